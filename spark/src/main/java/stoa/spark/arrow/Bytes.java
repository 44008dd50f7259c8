package stoa.spark.arrow;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Bytes that grow, little-endian. */
final class Bytes {
  private static final int MOST = Integer.MAX_VALUE - 64;
  private byte[] b = new byte[64];
  private ByteBuffer view = ByteBuffer.wrap(b).order(ByteOrder.LITTLE_ENDIAN);
  private int n;

  int length() {
    return n;
  }

  private int room(int more) {
    int at = n;
    if (more > MOST - n) {
      throw new IllegalStateException("a column of more than 2 GiB in one batch");
    }
    n += more;
    if (n > b.length) {
      b = Arrays.copyOf(b, (int) Math.min(MOST, Math.max(n, 2L * b.length)));
      view = ByteBuffer.wrap(b).order(ByteOrder.LITTLE_ENDIAN);
    }
    return at;
  }

  void putByte(int v) {
    int at = room(1);
    b[at] = (byte) v;
  }

  void putShort(int v) {
    int at = room(2);
    view.putShort(at, (short) v);
  }

  void putInt(int v) {
    int at = room(4);
    view.putInt(at, v);
  }

  void putLong(long v) {
    int at = room(8);
    view.putLong(at, v);
  }

  void put(byte[] from, int at, int length) {
    int to = room(length); // before b is used: it may be another array afterwards
    System.arraycopy(from, at, b, to, length);
  }

  void zeros(int length) {
    int at = room(length);
    Arrays.fill(b, at, at + length, (byte) 0);
  }

  void align(int to) {
    zeros((to - n % to) % to);
  }

  void setByte(int at, int v) {
    b[at] = (byte) v;
  }

  void setShort(int at, int v) {
    view.putShort(at, (short) v);
  }

  void setInt(int at, int v) {
    view.putInt(at, v);
  }

  void setLong(int at, long v) {
    view.putLong(at, v);
  }

  /** Sets bit i, in the order of Arrow; the bytes up to it are there. */
  void setBit(int i) {
    b[i >> 3] |= (byte) (1 << (i & 7));
  }

  void clear() {
    n = 0;
  }

  void writeTo(OutputStream out) throws IOException {
    out.write(b, 0, n);
  }
}
