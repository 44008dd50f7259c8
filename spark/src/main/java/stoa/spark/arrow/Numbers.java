package stoa.spark.arrow;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns whose values have a fixed width. One class a width and meaning, so that a call of Spark's is one load. */
final class Numbers {
  private Numbers() {}

  abstract static class Fixed extends Column {
    private final int width;
    protected int at;

    Fixed(DataType type, int width) {
      super(type);
      this.width = width;
    }

    @Override void loadRest(Buffers b) throws IOException {
      at = b.buffer((long) width * length);
    }

    final int int32(int i) {
      return Platform.getInt(body, BASE + at + 4L * i);
    }

    final long int64(int i) {
      return Platform.getLong(body, BASE + at + 8L * i);
    }
  }

  static final class Null extends Column {
    Null() {
      super(DataTypes.NullType);
    }

    @Override void load(Buffers b) throws IOException {
      onlyNulls(b);
    }

    @Override void loadRest(Buffers b) {}

    @Override public boolean isNullAt(int i) {
      return true;
    }
  }

  static final class Bool extends Column {
    private int at;

    Bool() {
      super(DataTypes.BooleanType);
    }

    @Override void loadRest(Buffers b) throws IOException {
      at = b.buffer((length + 7L) / 8);
    }

    @Override public boolean getBoolean(int i) {
      return (body[at + (i >> 3)] >> (i & 7) & 1) != 0;
    }
  }

  static final class Int8 extends Fixed {
    Int8() {
      super(DataTypes.ByteType, 1);
    }

    @Override public byte getByte(int i) {
      return body[at + i];
    }
  }

  static final class Uint8 extends Fixed {
    Uint8() {
      super(DataTypes.ShortType, 1);
    }

    @Override public short getShort(int i) {
      return (short) (body[at + i] & 0xff);
    }
  }

  static final class Int16 extends Fixed {
    Int16() {
      super(DataTypes.ShortType, 2);
    }

    @Override public short getShort(int i) {
      return Platform.getShort(body, BASE + at + 2L * i);
    }
  }

  static final class Uint16 extends Fixed {
    Uint16() {
      super(DataTypes.IntegerType, 2);
    }

    @Override public int getInt(int i) {
      return Platform.getShort(body, BASE + at + 2L * i) & 0xffff;
    }
  }

  /** Also days and months. */
  static final class Int32 extends Fixed {
    Int32(DataType type) {
      super(type, 4);
    }

    @Override public int getInt(int i) {
      return int32(i);
    }
  }

  static final class Uint32 extends Fixed {
    Uint32() {
      super(DataTypes.LongType, 4);
    }

    @Override public long getLong(int i) {
      return int32(i) & 0xffffffffL;
    }
  }

  /** Also microseconds. */
  static final class Int64 extends Fixed {
    Int64(DataType type) {
      super(type, 8);
    }

    @Override public long getLong(int i) {
      return int64(i);
    }
  }

  static final class Uint64 extends Fixed {
    Uint64() {
      super(DataTypes.createDecimalType(20, 0), 8);
    }

    @Override public Decimal getDecimal(int i, int precision, int scale) {
      if (isNullAt(i)) {
        return null;
      }
      long v = int64(i);
      BigDecimal d = v >= 0 ? BigDecimal.valueOf(v) : new BigDecimal(new BigInteger(Long.toUnsignedString(v)));
      return Decimal.apply(d, precision, scale);
    }
  }

  /** Seconds and milliseconds as the microseconds that Spark counts. */
  static final class Coarse extends Fixed {
    private final long times;

    Coarse(DataType type, long times) {
      super(type, 8);
      this.times = times;
    }

    @Override public long getLong(int i) {
      return isNullAt(i) ? 0 : Math.multiplyExact(int64(i), times);
    }
  }

  /** Nanoseconds as microseconds. What microseconds cannot say is an error, unless it may be cut off. */
  static final class Nanos extends Fixed {
    private final String name;
    private final boolean truncate;

    Nanos(DataType type, String name, boolean truncate) {
      super(type, 8);
      this.name = name;
      this.truncate = truncate;
    }

    @Override public long getLong(int i) {
      if (isNullAt(i)) {
        return 0;
      }
      return micros(int64(i), name, truncate);
    }

    static long micros(long v, String name, boolean truncate) {
      long micros = Math.floorDiv(v, 1000L);
      if (!truncate && micros * 1000 != v) {
        throw new ArithmeticException("column " + name + " has a time of " + v
            + " ns, and Spark counts microseconds: .option(\"nanoseconds\", \"truncate\") cuts them off");
      }
      return micros;
    }
  }

  /** Days and milliseconds of an interval as microseconds. */
  static final class DayTime extends Fixed {
    DayTime(DataType type) {
      super(type, 8);
    }

    @Override public long getLong(int i) {
      if (isNullAt(i)) {
        return 0;
      }
      long v = int64(i);
      return (int) v * 86_400_000_000L + (v >> 32) * 1000;
    }
  }

  /** Months, days and nanoseconds: Spark asks for them as three children. */
  static final class Interval extends Fixed {
    private final Part months = new Part(0);
    private final Part days = new Part(4);
    private final Part micros = new Part(8);
    private final String name;
    private final boolean truncate;

    Interval(String name, boolean truncate) {
      super(DataTypes.CalendarIntervalType, 16);
      this.name = name;
      this.truncate = truncate;
    }

    @Override public Column getChild(int k) {
      return k == 0 ? months : k == 1 ? days : micros;
    }

    private final class Part extends Column {
      private final int off;

      Part(int off) {
        super(off == 8 ? DataTypes.LongType : DataTypes.IntegerType);
        this.off = off;
      }

      @Override void loadRest(Buffers b) {}

      @Override public boolean isNullAt(int i) {
        return Interval.this.isNullAt(i);
      }

      @Override public int numNulls() {
        return Interval.this.numNulls();
      }

      private Object bytes() {
        return Interval.this.body;
      }

      @Override public int getInt(int i) {
        return Platform.getInt(bytes(), BASE + at + 16L * i + off);
      }

      @Override public long getLong(int i) {
        return Nanos.micros(Platform.getLong(bytes(), BASE + at + 16L * i + off), name, truncate);
      }
    }
  }

  static final class Half extends Fixed {
    Half() {
      super(DataTypes.FloatType, 2);
    }

    @Override public float getFloat(int i) {
      int h = Platform.getShort(body, BASE + at + 2L * i);
      int exponent = h >> 10 & 0x1f;
      int fraction = h & 0x3ff;
      if (exponent == 0) {
        float v = fraction * 0x1p-24f;
        return h < 0 ? -v : v;
      }
      int e = exponent == 0x1f ? 0xff : exponent - 15 + 127;
      return Float.intBitsToFloat((h & 0x8000) << 16 | e << 23 | fraction << 13);
    }
  }

  static final class Float32 extends Fixed {
    Float32() {
      super(DataTypes.FloatType, 4);
    }

    @Override public float getFloat(int i) {
      return Platform.getFloat(body, BASE + at + 4L * i);
    }
  }

  static final class Float64 extends Fixed {
    Float64() {
      super(DataTypes.DoubleType, 8);
    }

    @Override public double getDouble(int i) {
      return Platform.getDouble(body, BASE + at + 8L * i);
    }
  }

  /** Decimals of 4, 8, 16 or 32 bytes, little-endian. Those with more than 38 digits are text. */
  static final class Decimals extends Fixed {
    private final int bytes;
    private final int scale;
    private final boolean small; // fits 18 digits

    Decimals(DataType type, int bytes, int scale, int precision) {
      super(type, bytes);
      this.bytes = bytes;
      this.scale = scale;
      small = precision <= 18 && scale >= 0;
    }

    private BigDecimal value(int i) {
      byte[] big = new byte[bytes];
      for (int k = 0; k < bytes; k++) {
        big[k] = body[at + (i + 1) * bytes - 1 - k];
      }
      return new BigDecimal(new BigInteger(big), scale);
    }

    @Override public Decimal getDecimal(int i, int precision, int wanted) {
      if (isNullAt(i)) {
        return null;
      }
      if (small && wanted == scale) { // the higher bytes of what has 18 digits are its sign
        return Decimal.createUnsafe(bytes == 4 ? int32(i) : Platform.getLong(body, BASE + at + (long) bytes * i),
            precision, wanted);
      }
      return Decimal.apply(value(i), precision, wanted);
    }

    @Override public UTF8String getUTF8String(int i) {
      return isNullAt(i) ? null : UTF8String.fromString(value(i).toPlainString());
    }
  }
}
