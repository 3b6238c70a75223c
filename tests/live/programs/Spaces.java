// SPDX-License-Identifier: MIT
import java.util.ArrayList;
import java.util.List;

/** Keeps memory of its heap: so many MiB at first, and so many more once a line has come. Arguments: these two. */
public class Spaces {
	private static final List<byte[]> kept = new ArrayList<>();

	private static void keep(int mebibytes) {
		for (int i = 0; i < mebibytes * 4; i++)
			kept.add(new byte[1 << 18]);
	}

	private static void say(String text) {
		System.out.println(text);
		System.out.flush();
	}

	public static void main(String[] arguments) throws Exception {
		keep(Integer.parseInt(arguments[0]));
		say("ready " + ProcessHandle.current().pid());
		System.in.read();
		keep(Integer.parseInt(arguments[1]));
		say("done");
		while (System.in.read() >= 0)
			continue;
	}
}
