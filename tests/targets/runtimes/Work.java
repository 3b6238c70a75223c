// SPDX-License-Identifier: MIT

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * Java under load with its JIT on: threads, a small heap that is collected all the time, null pointers and stack
 * overflows that the virtual machine finds out by SIGSEGV, zlib through JNI, buffers outside the heap. Follows the
 * protocol of target.h.
 */
public final class Work {
	private static final int THREADS = 6, ROUNDS = 25, KEPT = 40;
	private static final List<ByteBuffer> kept = new ArrayList<>();

	private int value;

	private static void fail(String why) {
		System.out.println("failed " + why);
		System.out.flush();
		Runtime.getRuntime().halt(1);
	}

	/** Compiled, a null is not looked for: its page is not there. */
	private static int valueOf(Work work) {
		return work.value;
	}

	private static int nulls(int n) {
		Work there = new Work();
		int caught = 0, sum = 0;

		there.value = 1;
		for (int i = 0; i < n; i++) {
			try {
				sum += valueOf(i % 100 == 99 ? null : there);
			} catch (NullPointerException e) {
				caught++;
			}
		}
		if (caught != n / 100 || sum != n - n / 100)
			fail("null pointers: " + caught);
		return sum;
	}

	private static int descend(int depth) {
		return descend(depth + 1) + 1;
	}

	private static void overflow() {
		try {
			descend(0);
			fail("no end of the stack");
		} catch (StackOverflowError e) {
			return;
		}
	}

	private static void squeeze(int seed) throws Exception {
		byte[] plain = new byte[60000], packed = new byte[70000], back = new byte[60000];

		for (int i = 0; i < plain.length; i++)
			plain[i] = (byte)(i * seed % 23);
		Deflater deflater = new Deflater();
		deflater.setInput(plain);
		deflater.finish();
		int size = deflater.deflate(packed);
		deflater.end();
		Inflater inflater = new Inflater();
		inflater.setInput(packed, 0, size);
		int got = inflater.inflate(back);
		inflater.end();
		if (got != plain.length || !Arrays.equals(plain, back))
			fail("zlib gave another result");
	}

	private static void litter(int seed) {
		Map<String, int[]> all = new HashMap<>();

		for (int i = 0; i < 5000; i++)
			all.put("key " + i, new int[] {i, seed});
		for (int i = 0; i < 5000; i += 3)
			if (all.get("key " + i)[0] != i)
				fail("the collector took what was in use");
	}

	private static long work(int number) throws Exception {
		long sum = number;

		for (int round = 0; round < ROUNDS; round++) {
			sum = sum * 31 + nulls(20000);
			squeeze(number + round + 1);
			litter(round);
			if (round % 5 == 0)
				overflow();
			if (round % 8 == 0)
				System.gc();
		}
		return sum;
	}

	private static long all(int threads) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(threads);
		List<Callable<Long>> jobs = new ArrayList<>();
		long sum = 0;

		for (int i = 0; i < THREADS; i++) {
			int number = i;
			jobs.add(() -> work(number));
		}
		for (Future<Long> result : pool.invokeAll(jobs))
			sum = sum * 7 + result.get();
		pool.shutdown();
		return sum;
	}

	private static void keep() {
		for (int i = 0; i < KEPT; i++) {
			ByteBuffer block = ByteBuffer.allocateDirect(77777);

			block.put(0, (byte)i).put(77776, (byte)i);
			kept.add(block);
		}
	}

	public static void main(String[] arguments) throws Exception {
		Thread life = new Thread(() -> {
			try {
				Thread.sleep(120000);
			} catch (InterruptedException e) {
				return;
			}
			Runtime.getRuntime().halt(96);
		});
		life.setDaemon(true);
		life.start();
		long before = all(2);
		System.out.println("ready " + ProcessHandle.current().pid());
		System.in.read();
		keep();
		if (all(THREADS) != before)
			fail("another result");
		for (int i = 0; i < KEPT; i++)
			if (kept.get(i).get(0) != i || kept.get(i).get(77776) != i)
				fail("a buffer lost what was written there");
		System.out.println("checksum=" + before + "\nkept=" + KEPT + "\ndeflaters=" + THREADS * ROUNDS + "\ndone");
		System.in.read();
	}
}
