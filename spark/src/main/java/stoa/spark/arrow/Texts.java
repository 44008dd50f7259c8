package stoa.spark.arrow;

import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns of strings and bytes, in the layouts that Arrow has for them. */
final class Texts {
  private Texts() {}

  abstract static class Text extends Column {
    Text(DataType type) {
      super(type);
    }

    /** Where value i begins in the body, and, as the upper half, how long it is. */
    abstract long place(int i);

    static long placed(long base, long from, long to, long end) {
      if (from < 0 || to < from || to > end) {
        throw new IndexOutOfBoundsException("a value of " + from + ":" + to + " in " + end + " bytes");
      }
      return to - from << 32 | base + from;
    }

    @Override public final UTF8String getUTF8String(int i) {
      if (isNullAt(i)) {
        return null;
      }
      long p = place(i);
      return UTF8String.fromAddress(body, BASE + (int) p, (int) (p >> 32));
    }

    @Override public final byte[] getBinary(int i) {
      if (isNullAt(i)) {
        return null;
      }
      long p = place(i);
      int at = (int) p;
      return Arrays.copyOfRange(body, at, at + (int) (p >> 32));
    }
  }

  static final class Short extends Text {
    private int offsets;
    private int data;
    private int end;

    Short(DataType type) {
      super(type);
    }

    @Override void loadRest(Buffers b) throws IOException {
      offsets = b.buffer(length == 0 ? 0 : 4L * (length + 1));
      data = b.buffer(0);
      end = b.length;
    }

    @Override long place(int i) {
      long at = BASE + offsets + 4L * i;
      return placed(data, Platform.getInt(body, at), Platform.getInt(body, at + 4), end);
    }
  }

  static final class Large extends Text {
    private int offsets;
    private int data;
    private int end;

    Large(DataType type) {
      super(type);
    }

    @Override void loadRest(Buffers b) throws IOException {
      offsets = b.buffer(length == 0 ? 0 : 8L * (length + 1));
      data = b.buffer(0);
      end = b.length;
    }

    @Override long place(int i) {
      long at = BASE + offsets + 8L * i;
      return placed(data, Platform.getLong(body, at), Platform.getLong(body, at + 8), end);
    }
  }

  static final class Fixed extends Text {
    private final int width;
    private int data;

    Fixed(int width) {
      super(DataTypes.BinaryType);
      this.width = width;
    }

    @Override void loadRest(Buffers b) throws IOException {
      data = b.buffer((long) width * length);
    }

    @Override long place(int i) {
      return placed(data + (long) width * i, 0, width, width);
    }
  }

  /** Views: length, then up to 12 bytes in place, or 4 that repeat the first, a buffer and an offset in it. */
  static final class View extends Text {
    private int views;
    private int[] at = {};
    private int[] end = {};

    View(DataType type) {
      super(type);
    }

    @Override void loadRest(Buffers b) throws IOException {
      views = b.buffer(16L * length);
      int n = b.views();
      if (at.length != n) {
        at = new int[n];
        end = new int[n];
      }
      for (int k = 0; k < n; k++) {
        at[k] = b.buffer(0);
        end[k] = b.length;
      }
    }

    @Override long place(int i) {
      int v = views + 16 * i;
      int n = Platform.getInt(body, BASE + v);
      if (n <= 12) {
        return placed(v + 4, 0, n, 12);
      }
      int k = Platform.getInt(body, BASE + v + 8);
      int from = Platform.getInt(body, BASE + v + 12);
      return placed(at[k], from, (long) from + n, end[k]);
    }
  }
}
