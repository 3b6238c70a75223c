// SPDX-License-Identifier: MIT
/* Leaks KIND COUNT: leaks memory outside the Java heap at one line, beside what is given back. */
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class Leaks {
    static final List<Object> kept = new ArrayList<>();
    static final CountDownLatch never = new CountDownLatch(1);

    static void buffer() {
        kept.add(ByteBuffer.allocateDirect(2000)); // leaks: buffer
    }

    static void inflater() {
        kept.add(new Inflater()); // leaks: inflater
    }

    static native long take(long size);

    static void fromLibrary() {
        take(3000); // leaks: library
    }

    static void wait(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static void thread() {
        Thread thread = new Thread(() -> wait(never));
        thread.setDaemon(true);
        thread.start(); // leaks: thread
    }

    static void leak(String kind) {
        switch (kind) {
            case "buffer" -> buffer();
            case "inflater" -> inflater();
            case "library" -> fromLibrary();
            case "thread" -> thread();
            default -> throw new IllegalArgumentException(kind);
        }
    }

    /* What a request takes and gives back. */
    static int request(int n) {
        Deflater deflater = new Deflater();
        byte[] out = new byte[300];
        deflater.setInput(new byte[n % 1000]);
        deflater.finish();
        int size = deflater.deflate(out);
        deflater.end();
        return size;
    }

    static void say(String word) {
        System.out.println(word);
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[1]);
        if (arguments[0].equals("library"))
            System.load(arguments[2]);
        for (int i = 0; i < 200; i++)
            request(i);
        say("ready " + ProcessHandle.current().pid());
        System.in.read();
        for (int i = 0; i < count; i++) {
            leak(arguments[0]);
            request(i);
            Thread.sleep(4000 / count);
        }
        say("done");
        System.in.read();
        Runtime.getRuntime().halt(0);
    }
}
