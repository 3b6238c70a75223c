// SPDX-License-Identifier: MIT
/*
 * Overflow: its stack overflows again and again, which HotSpot learns of by a signal that strikes where a method begins.
 *
 * Argument: how often. It follows the protocol of targets (target.h).
 */
public class Overflow {
	static int deep(int depth) {
		return deep(depth + 1) + 1;
	}

	static void run(int rounds) {
		for (int i = 0; i < rounds; i++) {
			try {
				deep(0);
			} catch (StackOverflowError e) {
				continue;
			}
		}
	}

	public static void main(String[] arguments) throws Exception {
		Thread thread = new Thread(null, () -> run(Integer.parseInt(arguments[0])), "overflow", 256 << 10);

		run(100);
		Frames.wait("ready " + ProcessHandle.current().pid());
		thread.start();
		thread.join();
		Frames.wait("done");
	}
}
