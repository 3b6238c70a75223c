// SPDX-License-Identifier: MIT

//! rust: a Rust program under load: threads, channels, collections, panics that are caught, and a known number of boxes
//! that are forgotten. Follows the protocol of target.h.
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::panic;
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::Duration;

const THREADS: u64 = 4;
const ROUNDS: u64 = 150;

struct Parcel {
    number: u64,
    text: String,
    numbers: Vec<u64>,
}

mod hostile {
    /// Keeps the compiler from seeing through a value.
    fn opaque<T>(value: T) -> T {
        let hidden = std::mem::MaybeUninit::new(value);
        unsafe { std::ptr::read_volatile(hidden.as_ptr()) }
    }

    pub struct Keeper<T> {
        pub kept: T,
    }

    impl<T: Default> Keeper<T> {
        #[inline(never)]
        pub fn forget_one() {
            std::mem::forget(opaque(Box::new(Keeper { kept: T::default() })));
        }
    }

    #[inline(never)]
    pub fn pair(size: usize) -> usize {
        let block: Vec<u8> = vec![7; opaque(size)];
        opaque(&block).iter().map(|b| *b as usize).sum()
    }
}

fn fail(why: &str) -> ! {
    println!("failed {}", why);
    std::process::exit(1)
}

fn make(number: u64) -> Parcel {
    Parcel { number, text: format!("parcel {}", number), numbers: (0..number % 50).collect() }
}

fn check(parcel: &Parcel) -> u64 {
    if parcel.text != format!("parcel {}", parcel.number) {
        fail("a parcel was opened on its way");
    }
    parcel.numbers.iter().sum::<u64>() + parcel.number
}

/// A panic goes through frames that hold boxes, and is caught.
fn panic_and_catch(number: u64) {
    let result = panic::catch_unwind(|| {
        let held = vec![make(number), make(number + 1)];
        if check(&held[0]) < u64::MAX {
            panic!("number {}", number);
        }
        held.len()
    });
    match result {
        Ok(_) => fail("a panic was lost"),
        Err(why) => {
            if why.downcast_ref::<String>() != Some(&format!("number {}", number)) {
                fail("a panic was changed")
            }
        }
    }
}

fn work(number: u64, out: mpsc::Sender<Parcel>, shared: Arc<Mutex<BTreeMap<u64, String>>>) -> u64 {
    let mut sum = 0;
    let mut seen: HashMap<u64, Vec<u8>> = HashMap::new();
    for round in 0..ROUNDS {
        let key = number * ROUNDS + round;
        seen.insert(key, vec![round as u8; 100]);
        shared.lock().unwrap().insert(key, key.to_string());
        out.send(make(key)).unwrap();
        if hostile::pair(200 + round as usize) != 7 * (200 + round as usize) {
            fail("a block lost what was written there");
        }
        hostile::Keeper::<[u8; 24]>::forget_one();
        panic_and_catch(key);
        sum += seen[&key].iter().map(|b| *b as u64).sum::<u64>();
    }
    sum
}

fn wait() {
    let mut one = [0u8; 1];
    let _ = std::io::stdin().read(&mut one);
}

fn expected() -> (u64, u64) {
    let each: u64 = (0..ROUNDS).map(|r| 100 * (r % 256)).sum();
    let parcels = (0..THREADS * ROUNDS).map(|k| (0..k % 50).sum::<u64>() + k).sum();
    (each * THREADS, parcels)
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(120));
        std::process::exit(96);
    });
    panic_and_catch(0);
    println!("ready {}", std::process::id());
    std::io::stdout().flush().unwrap();
    wait();
    let (out, parcels) = mpsc::channel();
    let shared = Arc::new(Mutex::new(BTreeMap::new()));
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (out, shared) = (out.clone(), shared.clone());
            thread::spawn(move || work(number, out, shared))
        })
        .collect();
    drop(out);
    let came: u64 = parcels.iter().map(|p| check(&p)).sum();
    let sum: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    if (sum, came) != expected() {
        fail("another result");
    }
    let shared = Arc::try_unwrap(shared).unwrap().into_inner().unwrap();
    if shared.len() as u64 != THREADS * ROUNDS || shared.iter().any(|(k, v)| k.to_string() != *v) {
        fail("a map lost something");
    }
    println!("forget_one.impacting.count={}", THREADS * ROUNDS);
    println!("forget_one.impacting.bytes={}", THREADS * ROUNDS * 24);
    println!("pair.transient.count={}", THREADS * ROUNDS);
    println!("pair.impacting.count=0");
    println!("panic_and_catch.impacting.count=0");
    println!("done");
    wait();
}
