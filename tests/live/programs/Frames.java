// SPDX-License-Identifier: MIT
/*
 * Frames: allocates memory outside the Java heap from many places, and knows each of its stacks.
 *
 * Arguments: rounds, and the file that the answer is written to: a line a stack, "blocks bytes frame frame …", innermost
 * first, a frame as "class.method:line"; and "virtual" for threads of that kind, which sleep now and then. It
 * follows the protocol of targets (target.h).
 */
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.IntConsumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

public class Frames {
	static final StackWalker WALKER = StackWalker.getInstance(StackWalker.Option.SHOW_HIDDEN_FRAMES);
	static final Map<String, long[]> KNOWN = new HashMap<>();
	static final List<ByteBuffer> KEPT = new ArrayList<>();

	/* One line, so that both are on it. */
	static synchronized void take(int size) {
		ByteBuffer made = ByteBuffer.allocateDirect(size); String stack = WALKER.walk(frames -> frames.map(Frames::name).collect(Collectors.joining(" ")));
		long[] amount = KNOWN.computeIfAbsent(stack, key -> new long[2]);

		KEPT.add(made);
		amount[0]++;
		amount[1] += size;
	}

	static String name(StackWalker.StackFrame frame) {
		return frame.getClassName() + "." + frame.getMethodName() + ":" + frame.getLineNumber();
	}

	static int deep(int depth, int size) {
		if (depth == 0) {
			take(size);
			return 1;
		}
		return 1 + deep(depth - 1, size);
	}

	interface Shape {
		void make(int size);
	}

	static class Square implements Shape {
		public void make(int size) {
			take(size);
		}
	}

	static class Circle implements Shape {
		public void make(int size) {
			small(size);
		}
		/* Small enough to be inlined. */
		private void small(int size) {
			take(size + 8);
		}
	}

	static class Sub extends Circle {
		@Override
		public void make(int size) {
			super.make(size);
		}
	}

	public void reflected(int size) {
		take(size);
	}

	static long work(int n) {
		long sum = 0;

		for (int i = 0; i < n; i++)
			sum += (i ^ sum) * 31;
		return sum;
	}

	static void sorted(int size) {
		Integer[] numbers = {2, 1};

		Arrays.sort(numbers, new Comparator<Integer>() {
			@Override
			public int compare(Integer a, Integer b) {
				take(size);
				return a - b;
			}
		});
	}

	static void thrown(int size) {
		try {
			throw new IllegalStateException();
		} catch (IllegalStateException e) {
			take(size);
		} finally {
			take(size + 16);
		}
	}

	static synchronized void locked(int size) throws Exception {
		Callable<Integer> call = () -> {
			take(size);
			return size;
		};

		call.call();
	}

	/* What is compiled takes it for granted that nobody overrides these: until somebody does, while it is on the stack. */
	static class Base {
		int kind() {
			return 1;
		}
	}

	static class Other extends Base {
		@Override
		int kind() {
			return 2;
		}
	}

	/* Is not to be inlined. */
	static void helper(int round, int at, int size) throws Exception {
		if (round == at)
			Class.forName("Frames$Other").getDeclaredConstructor().newInstance();
		if (size > 0)
			take(size);
	}

	static int assumed(Base base, int round, int at, int size) throws Exception {
		int sum = base.kind();

		helper(round, at, size);
		return sum + base.kind();
	}

	static void one(Shape[] shapes, Method method, Base base, int i, int rounds) throws Exception {
		IntConsumer lambda = size -> take(size);

		lambda.accept(64);
		deep(i % 7, 80);
		shapes[i % shapes.length].make(96);
		method.invoke(new Frames(), 128);
		sorted(144);
		thrown(160);
		locked(192);
		IntStream.range(0, 2).forEach(n -> take(208 + 8 * n));
		assumed(base, i, rounds * 3 / 4, 240);
		work(500);
	}

	static void wait(String said) throws IOException {
		System.out.println(said);
		System.in.read();
	}

	static void run(int rounds, boolean sleeps) {
		Shape[] shapes = {new Square(), new Circle(), new Sub()};
		Base base = new Base();

		try {
			Method method = Frames.class.getMethod("reflected", int.class);

			for (int i = 0; i < rounds; i++) {
				if (sleeps)
					Thread.sleep(1);
				one(shapes, method, base, i, rounds);
			}
		} catch (Exception e) {
			throw new RuntimeException(e);
		}
	}

	static void warmUp() throws Exception {
		Shape[] shapes = {new Square(), new Circle(), new Sub()};

		one(shapes, Frames.class.getMethod("reflected", int.class), new Base(), 0, 100);
		/* Compiled by then. */
		for (int i = 0; i < 40000; i++)
			assumed(new Base(), i, -1, 0);
	}

	static Thread start(boolean virtual, Runnable body) throws Exception {
		if (virtual)
			return (Thread)Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body);
		Thread thread = new Thread(body);
		thread.start();
		return thread;
	}

	public static void main(String[] arguments) throws Exception {
		int rounds = Integer.parseInt(arguments[0]);
		Thread[] threads = new Thread[2];

		/* Each class that the rounds need is loaded by then. */
		warmUp();
		KNOWN.clear();
		wait("ready " + ProcessHandle.current().pid());
		for (int i = 0; i < threads.length; i++)
			threads[i] = start(arguments.length > 2, () -> run(rounds, arguments.length > 2));
		run(rounds, false);
		for (Thread thread : threads)
			thread.join();
		wait("done");
		try (PrintWriter out = new PrintWriter(arguments[1])) {
			KNOWN.forEach((stack, amount) -> out.println(amount[0] + " " + amount[1] + " " + stack));
		}
	}
}
