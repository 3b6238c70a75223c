// SPDX-License-Identifier: MIT
// peers.rs: code of all kinds for peers.py: generics, traits, closures, threads, and what of std they need.
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::thread;

mod shop {
    pub struct Basket<T> {
        pub items: Vec<Box<T>>,
    }
    impl<T: Clone + std::fmt::Debug> Basket<T> {
        #[inline(never)]
        pub fn leak_box(&mut self, v: T) {
            self.items.push(Box::new(v.clone()));
            std::mem::forget(Box::new(v));
        }
    }
    pub trait Price {
        fn price(&self) -> u64;
    }
    impl Price for Basket<u64> {
        fn price(&self) -> u64 {
            self.items.iter().map(|x| **x).sum()
        }
    }
    impl Price for Basket<String> {
        fn price(&self) -> u64 {
            self.items
                .iter()
                .map(|x| x.len() as u64)
                .fold(0, |a, b| a ^ b)
        }
    }
}
use shop::Price;

fn main() {
    let mut words: HashMap<String, usize> = HashMap::new();
    let mut tree = BTreeMap::new();
    let mut text = String::new();
    let mut s = shop::Basket::<String> { items: vec![] };
    let mut n = shop::Basket::<u64> { items: vec![] };
    for a in std::env::args() {
        if let Ok(mut f) = std::fs::File::open(&a) {
            let _ = f.read_to_string(&mut text);
        }
        for w in a.split('/') {
            *words.entry(w.to_string()).or_insert(0) += 1;
            tree.insert(w.len(), w.to_owned());
            s.leak_box(w.to_string());
            n.leak_box(w.len() as u64);
        }
    }
    let mut sorted: Vec<_> = words.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let all: Vec<Box<dyn Price + Send>> = vec![Box::new(s), Box::new(n)];
    let t = thread::spawn(move || all.iter().map(|p| p.price()).sum::<u64>());
    println!("{:?} {:?} {}", sorted, tree, t.join().unwrap());
}
