package stoa.spark.arrow;

import java.io.IOException;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns that consist of columns. */
final class Nested {
  private Nested() {}

  static final class Struct extends Column {
    private final Column[] children;

    Struct(DataType type, Column[] children) {
      super(type);
      this.children = children;
    }

    @Override void loadRest(Buffers b) throws IOException {
      for (Column c : children) {
        c.load(b);
        if (c.length < length) {
          throw new IOException("a struct of " + length + " rows, and " + c.length + " of a field");
        }
      }
    }

    @Override public Column getChild(int k) {
      return children[k];
    }
  }

  /** Some fields of a struct, which came as columns of their own. */
  static final class Assembled extends Column {
    private final Column[] children;
    private final Column witness; // null where the struct is; none: it never is

    Assembled(DataType type, Column[] children, Column witness) {
      super(type);
      this.children = children;
      this.witness = witness;
    }

    @Override void loadRest(Buffers b) {}

    @Override public boolean isNullAt(int i) {
      return witness != null && witness.isNullAt(i);
    }

    @Override public int numNulls() {
      return witness == null ? 0 : witness.numNulls();
    }

    @Override public Column getChild(int k) {
      return children[k];
    }
  }

  /** Lists and maps: offsets of 4 or 8 bytes, or as many entries in each. */
  static final class Lists extends Column {
    private final int width; // of offsets; 0: all lists are of the same size
    private final int size;
    private final Column entries;
    private int offsets;

    Lists(DataType type, int width, int size, Column entries) {
      super(type);
      this.width = width;
      this.size = size;
      this.entries = entries;
    }

    @Override void loadRest(Buffers b) throws IOException {
      if (width > 0) {
        offsets = b.buffer(length == 0 ? 0 : (long) width * (length + 1));
      }
      entries.load(b);
      if (width == 0 && entries.length < (long) size * length) {
        throw new IOException(length + " lists of " + size + " with " + entries.length + " entries");
      }
    }

    private long offset(int i) {
      switch (width) {
        case 0: return (long) size * i;
        case 4: return Platform.getInt(body, BASE + offsets + 4L * i);
        default: return Platform.getLong(body, BASE + offsets + 8L * i);
      }
    }

    /** Checks where list i lies, and returns its size. */
    private int sizeOf(int i) {
      long from = offset(i);
      long to = offset(i + 1);
      if (from < 0 || to < from || to > entries.length) {
        throw new IndexOutOfBoundsException("a list of " + from + ":" + to + " of " + entries.length + " entries");
      }
      return (int) (to - from);
    }

    @Override public ColumnarArray getArray(int i) {
      return isNullAt(i) ? null : new ColumnarArray(entries, (int) offset(i), sizeOf(i));
    }

    @Override public ColumnarMap getMap(int i) {
      if (isNullAt(i)) {
        return null;
      }
      return new ColumnarMap(entries.getChild(0), entries.getChild(1), (int) offset(i), sizeOf(i));
    }
  }

  /** Codes, and the values that they stand for, which other messages bring. */
  static final class Dictionary extends Column {
    private final long id;
    private final int bytes;
    private final boolean signed;
    private int codes;
    private Column values;

    Dictionary(DataType type, Field f) {
      super(type);
      id = f.dictionaryId;
      bytes = f.indexBits / 8;
      signed = f.indexSigned;
    }

    @Override void loadRest(Buffers b) throws IOException {
      codes = b.buffer((long) bytes * length);
      values = b.dictionaries.get(id);
      if (values == null && numNulls() < length) {
        throw new IOException("a column whose dictionary did not come");
      }
    }

    private int code(int i) {
      long at = BASE + codes + (long) bytes * i;
      long c;
      switch (bytes) {
        case 1: c = Platform.getByte(body, at); break;
        case 2: c = Platform.getShort(body, at); break;
        case 4: c = Platform.getInt(body, at); break;
        default: c = Platform.getLong(body, at);
      }
      if (!signed && bytes < 8) {
        c &= (1L << 8 * bytes) - 1;
      }
      if (c < 0 || c >= values.length) {
        throw new IndexOutOfBoundsException("code " + c + " of a dictionary of " + values.length);
      }
      return (int) c;
    }

    @Override public boolean isNullAt(int i) {
      return super.isNullAt(i) || values.isNullAt(code(i));
    }

    @Override public int numNulls() { // those of the values are rows, too: how many is not known
      int n = super.numNulls();
      return values != null && values.hasNull() ? Math.max(n, 1) : n;
    }

    @Override public boolean getBoolean(int i) {
      return values.getBoolean(code(i));
    }

    @Override public byte getByte(int i) {
      return values.getByte(code(i));
    }

    @Override public short getShort(int i) {
      return values.getShort(code(i));
    }

    @Override public int getInt(int i) {
      return values.getInt(code(i));
    }

    @Override public long getLong(int i) {
      return values.getLong(code(i));
    }

    @Override public float getFloat(int i) {
      return values.getFloat(code(i));
    }

    @Override public double getDouble(int i) {
      return values.getDouble(code(i));
    }

    @Override public Decimal getDecimal(int i, int precision, int scale) {
      return isNullAt(i) ? null : values.getDecimal(code(i), precision, scale);
    }

    @Override public UTF8String getUTF8String(int i) {
      return isNullAt(i) ? null : values.getUTF8String(code(i));
    }

    @Override public byte[] getBinary(int i) {
      return isNullAt(i) ? null : values.getBinary(code(i));
    }

    @Override public ColumnarArray getArray(int i) {
      return isNullAt(i) ? null : values.getArray(code(i));
    }

    @Override public ColumnarMap getMap(int i) {
      return isNullAt(i) ? null : values.getMap(code(i));
    }
  }
}
