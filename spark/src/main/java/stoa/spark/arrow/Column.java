package stoa.spark.arrow;

import java.io.IOException;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of the batch that was read last: positions in its bytes. The next batch takes the same bytes, as Spark's own
 * readers do. Lengths are compared with what is there when a batch is loaded, so that Platform, which checks nothing,
 * stays inside.
 */
public abstract class Column extends ColumnVector {
  static final int BASE = Platform.BYTE_ARRAY_OFFSET;

  protected byte[] body;
  protected int length;
  private int validity;
  private int nulls;

  protected Column(DataType type) {
    super(type);
  }

  /** Takes its nodes and buffers of a batch. */
  void load(Buffers b) throws IOException {
    body = b.body;
    length = b.node();
    nulls = (int) b.nulls;
    validity = b.buffer(nulls == 0 ? 0 : (length + 7L) / 8);
    loadRest(b);
  }

  abstract void loadRest(Buffers b) throws IOException;

  /** The column has so many nulls, and no bits that say where. */
  void onlyNulls(Buffers b) throws IOException {
    body = b.body;
    length = b.node();
    nulls = length;
  }

  @Override public void close() {}

  @Override public final boolean hasNull() {
    return numNulls() > 0;
  }

  @Override public int numNulls() {
    return nulls;
  }

  @Override public boolean isNullAt(int i) {
    return nulls > 0 && (body[validity + (i >> 3)] >> (i & 7) & 1) == 0;
  }

  private UnsupportedOperationException wrong(String what) {
    return new UnsupportedOperationException(what + " of a column of " + type);
  }

  @Override public boolean getBoolean(int i) {
    throw wrong("a boolean");
  }

  @Override public byte getByte(int i) {
    throw wrong("a byte");
  }

  @Override public short getShort(int i) {
    throw wrong("a short");
  }

  @Override public int getInt(int i) {
    throw wrong("an int");
  }

  @Override public long getLong(int i) {
    throw wrong("a long");
  }

  @Override public float getFloat(int i) {
    throw wrong("a float");
  }

  @Override public double getDouble(int i) {
    throw wrong("a double");
  }

  @Override public ColumnarArray getArray(int i) {
    throw wrong("an array");
  }

  @Override public ColumnarMap getMap(int i) {
    throw wrong("a map");
  }

  @Override public Decimal getDecimal(int i, int precision, int scale) {
    throw wrong("a decimal");
  }

  @Override public UTF8String getUTF8String(int i) {
    throw wrong("a string");
  }

  @Override public byte[] getBinary(int i) {
    throw wrong("binary");
  }

  @Override public Column getChild(int k) {
    throw wrong("a child");
  }
}
