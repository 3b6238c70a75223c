// SPDX-License-Identifier: MIT
/*
 * Unloaded: classes of one shape come and go, each to where the one before it was, and allocate memory outside the Java
 * heap. It knows each of its stacks.
 *
 * Arguments: how many classes, and the file that the answer is written to, as Frames does.
 */
import java.io.PrintWriter;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

public class Unloaded {
	static final long LIFE = 100; /* ms that a class lives for, and that its memory is nobody's for */
	static final Map<String, long[]> KNOWN = new HashMap<>();
	static final List<ByteBuffer> KEPT = new ArrayList<>();

	public interface Maker {
		int make(int size);
	}

	/* One line, so that both are on it. */
	public static void take(int size) {
		ByteBuffer made = ByteBuffer.allocateDirect(size); String stack = Frames.WALKER.walk(frames -> frames.map(Frames::name).collect(Collectors.joining(" ")));
		long[] amount = KNOWN.computeIfAbsent(stack, key -> new long[2]);

		KEPT.add(made);
		amount[0]++;
		amount[1] += size;
	}

	static class Loader extends ClassLoader {
		Loader() {
			super(Unloaded.class.getClassLoader());
		}

		/* The same but for the number in its name. */
		Class<?> number(byte[] code, int number) {
			String text = new String(code, StandardCharsets.ISO_8859_1).replace("Unloaded000", String.format("Unloaded%03d", number));

			return defineClass(null, text.getBytes(StandardCharsets.ISO_8859_1), 0, text.length());
		}
	}

	static void one(byte[] code, int number) throws Exception {
		Constructor<?> constructor = new Loader().number(code, number).getDeclaredConstructor();
		Maker maker;

		constructor.setAccessible(true);
		maker = (Maker)constructor.newInstance();
		for (int i = 0; i < 2000; i++)
			maker.make(0);
		for (int i = 0; i < 5; i++)
			maker.make(1000);
	}

	static void run(byte[] code, int from, int to) throws Exception {
		for (int i = from; i < to; i++) {
			one(code, i);
			Thread.sleep(LIFE);
			System.gc();
			Thread.sleep(LIFE);
		}
	}

	public static void main(String[] arguments) throws Exception {
		int classes = Integer.parseInt(arguments[0]);
		byte[] code = Unloaded.class.getResourceAsStream("Unloaded000.class").readAllBytes();

		run(code, 900, 903);
		KNOWN.clear();
		Frames.wait("ready " + ProcessHandle.current().pid());
		run(code, 0, classes);
		Frames.wait("done");
		try (PrintWriter out = new PrintWriter(arguments[1])) {
			KNOWN.forEach((stack, amount) -> out.println(amount[0] + " " + amount[1] + " " + stack));
		}
	}
}

class Unloaded000 implements Unloaded.Maker {
	int sum;

	public int make(int size) {
		sum++;
		return within(size) + sum;
	}

	int within(int size) {
		if (size > 0)
			Unloaded.take(size);
		return sum;
	}
}
