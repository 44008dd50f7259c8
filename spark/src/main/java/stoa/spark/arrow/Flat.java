package stoa.spark.arrow;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** A table of FlatBuffers. ByteBuffer checks every position; what is out of bounds is an exception. */
final class Flat {
  private final ByteBuffer bytes;
  private final int at;
  private final int fields; // where the table of offsets begins
  private final int fieldBytes;

  private Flat(ByteBuffer bytes, int at) {
    this.bytes = bytes;
    this.at = at;
    fields = at - bytes.getInt(at);
    fieldBytes = bytes.getShort(fields) & 0xffff;
  }

  /** The root of a message. */
  static Flat root(byte[] message) {
    ByteBuffer b = ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN);
    return new Flat(b, b.getInt(0));
  }

  /** The position of field i; 0 if it is not there. */
  private int position(int i) {
    int entry = 4 + 2 * i;
    int off = entry + 2 <= fieldBytes ? bytes.getShort(fields + entry) & 0xffff : 0;
    return off == 0 ? 0 : at + off;
  }

  private int target(int p) {
    return p + bytes.getInt(p);
  }

  boolean has(int i) {
    return position(i) != 0;
  }

  int byteAt(int i, int absent) {
    int p = position(i);
    return p == 0 ? absent : bytes.get(p);
  }

  int shortAt(int i, int absent) {
    int p = position(i);
    return p == 0 ? absent : bytes.getShort(p);
  }

  int intAt(int i, int absent) {
    int p = position(i);
    return p == 0 ? absent : bytes.getInt(p);
  }

  long longAt(int i, long absent) {
    int p = position(i);
    return p == 0 ? absent : bytes.getLong(p);
  }

  String string(int i) {
    int p = position(i);
    if (p == 0) {
      return null;
    }
    int t = target(p);
    int n = bytes.getInt(t);
    if (n < 0 || n > bytes.capacity() - t - 4) {
      throw new IndexOutOfBoundsException("a string of " + n + " bytes");
    }
    return new String(bytes.array(), t + 4, n, StandardCharsets.UTF_8);
  }

  Flat table(int i) {
    int p = position(i);
    return p == 0 ? null : new Flat(bytes, target(p));
  }

  /** The number of entries of a vector. */
  int length(int i) {
    int p = position(i);
    return p == 0 ? 0 : bytes.getInt(target(p));
  }

  /** Entry k of a vector of tables. */
  Flat entry(int i, int k) {
    int p = target(position(i)) + 4 + 4 * k;
    return new Flat(bytes, target(p));
  }

  /** Word w of entry k of a vector of structs of two longs. */
  long pair(int i, int k, int w) {
    return bytes.getLong(target(position(i)) + 4 + 16 * k + 8 * w);
  }

  /** Entry k of a vector of longs. */
  long longEntry(int i, int k) {
    return bytes.getLong(target(position(i)) + 4 + 8 * k);
  }
}
