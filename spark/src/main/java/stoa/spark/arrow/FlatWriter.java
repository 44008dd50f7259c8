package stoa.spark.arrow;

import java.nio.charset.StandardCharsets;

/**
 * Writes FlatBuffers from front to back: a table stands before what it refers to, and the offsets are filled in when
 * that is written. Each table has a table of offsets of its own, right before it.
 */
final class FlatWriter {
  final Bytes out = new Bytes();

  FlatWriter() {
    out.putInt(0); // the offset of the root
  }

  /** Writes a table whose field i has sizes[i] bytes, zero: it has no such field. */
  Table table(int... sizes) {
    int fields = sizes.length;
    int[] inline = new int[fields];
    int end = 4;
    for (int size = 8; size > 0; size /= 2) { // the widest first: none needs padding but the first
      for (int i = 0; i < fields; i++) {
        if (sizes[i] == size) {
          end = (end + size - 1) / size * size;
          inline[i] = end;
          end += size;
        }
      }
    }
    int offsets = 4 + 2 * fields;
    while ((out.length() + offsets) % 8 != 0) {
      out.putByte(0);
    }
    int vtable = out.length();
    out.putShort(offsets);
    out.putShort(end);
    for (int at : inline) {
      out.putShort(at);
    }
    int at = out.length();
    out.putInt(at - vtable);
    out.zeros(end - 4);
    return new Table(at, inline);
  }

  /** A table that was written, whose fields are filled in. */
  final class Table {
    private final int at;
    private final int[] inline;

    private Table(int at, int[] inline) {
      this.at = at;
      this.inline = inline;
    }

    /** Makes it the root. */
    Table root() {
      out.setInt(0, at);
      return this;
    }

    Table setByte(int i, int v) {
      out.setByte(at + inline[i], v);
      return this;
    }

    Table setShort(int i, int v) {
      out.setShort(at + inline[i], v);
      return this;
    }

    Table setInt(int i, int v) {
      out.setInt(at + inline[i], v);
      return this;
    }

    Table setLong(int i, long v) {
      out.setLong(at + inline[i], v);
      return this;
    }

    Table setTable(int i, Table t) {
      return refer(i, t.at);
    }

    Table setString(int i, String s) {
      byte[] b = s.getBytes(StandardCharsets.UTF_8);
      out.align(4);
      refer(i, out.length());
      out.putInt(b.length);
      out.put(b, 0, b.length);
      out.putByte(0);
      return this;
    }

    /** Writes a vector of n offsets, and returns where the first of them is. */
    int setVector(int i, int n) {
      out.align(4);
      refer(i, out.length());
      out.putInt(n);
      int first = out.length();
      out.zeros(4 * n);
      return first;
    }

    /** Writes a vector of structs of two longs. */
    Table setPairs(int i, long[] words) {
      while (out.length() % 8 != 4) {
        out.putByte(0);
      }
      refer(i, out.length());
      out.putInt(words.length / 2);
      for (long w : words) {
        out.putLong(w);
      }
      return this;
    }

    /** Makes the entry of a vector at a position refer to this table. */
    void entry(int position) {
      out.setInt(position, at - position);
    }

    private Table refer(int i, int target) {
      int field = at + inline[i];
      out.setInt(field, target - field);
      return this;
    }
  }
}
