package stoa.spark.arrow;

import java.io.IOException;
import java.io.OutputStream;
import java.math.BigInteger;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;

/** A column of Arrow that is filled with values of Spark: which type it has, and the buffers of a batch. */
abstract class Filler {
  final String name;
  final boolean nullable;
  final Field.Kind kind;
  final Filler[] children;
  final Bytes values = new Bytes();
  private final Bytes valid = new Bytes();
  int length;
  private int nulls;

  Filler(String name, boolean nullable, Field.Kind kind, Filler... children) {
    this.name = name;
    this.nullable = nullable;
    this.kind = kind;
    this.children = children;
  }

  /** The column of a type of Spark. */
  static Filler of(String name, DataType t, boolean nullable) {
    if (t instanceof DecimalType) {
      return new Decimals(name, nullable, (DecimalType) t);
    }
    if (t instanceof ArrayType) {
      ArrayType a = (ArrayType) t;
      return new Lists(name, nullable, Filler.of("element", a.elementType(), a.containsNull()));
    }
    if (t instanceof MapType) {
      MapType m = (MapType) t;
      return new Maps(name, nullable, of("key", m.keyType(), false), of("value", m.valueType(), m.valueContainsNull()));
    }
    if (t instanceof StructType) {
      return new Structs(name, nullable, all((StructType) t));
    }
    String word = t.typeName();
    int end = word.indexOf(' ');
    switch (end < 0 ? word : word.substring(0, end)) {
      case "void": return new Nothing(name, nullable);
      case "boolean": return new Bools(name, nullable);
      case "byte": return new Numbers(name, nullable, Field.Kind.INT, 1);
      case "short": return new Numbers(name, nullable, Field.Kind.INT, 2);
      case "integer": return new Numbers(name, nullable, Field.Kind.INT, 4);
      case "long": return new Numbers(name, nullable, Field.Kind.INT, 8);
      case "float": return new Numbers(name, nullable, Field.Kind.FLOAT, 4);
      case "double": return new Numbers(name, nullable, Field.Kind.FLOAT, 8);
      case "date": return new Numbers(name, nullable, Field.Kind.DATE, 4);
      case "timestamp": return new Numbers(name, nullable, Field.Kind.TIMESTAMP, 8).zoned();
      case "timestamp_ntz": return new Numbers(name, nullable, Field.Kind.TIMESTAMP, 8);
      case "string": return new Texts(name, nullable, Field.Kind.UTF8);
      case "binary": return new Texts(name, nullable, Field.Kind.BINARY);
      default: break;
    }
    if (word.startsWith("char") || word.startsWith("varchar")) {
      return new Texts(name, nullable, Field.Kind.UTF8);
    }
    if (word.equals("interval")) {
      return new Intervals(name, nullable);
    }
    if (word.startsWith("interval")) {
      return word.contains("year") || word.contains("month") ? new Numbers(name, nullable, Field.Kind.INTERVAL, 4)
          : new Numbers(name, nullable, Field.Kind.DURATION, 8);
    }
    throw new UnsupportedOperationException("column " + name + ": stoa cannot write Spark's type " + word);
  }

  static Filler[] all(StructType t) {
    StructField[] fields = t.fields();
    Filler[] out = new Filler[fields.length];
    for (int i = 0; i < out.length; i++) {
      out[i] = of(fields[i].name(), fields[i].dataType(), fields[i].nullable());
    }
    return out;
  }

  /** Adds entry i of a row or an array. */
  final void add(SpecializedGetters from, int i) {
    if (from.isNullAt(i)) {
      addNull();
      return;
    }
    present();
    value(from, i);
  }

  /** Notes that an entry is there. */
  final void present() {
    if (length % 8 == 0) {
      valid.putByte(0);
    }
    valid.setBit(length++);
  }

  final void addNull() {
    if (!nullable) {
      throw new IllegalArgumentException("column " + name + " has a null, and its type has none");
    }
    addAbsent();
  }

  /** Adds an entry below a null. */
  final void addAbsent() {
    if (length % 8 == 0) {
      valid.putByte(0);
    }
    length++;
    nulls++;
    absent();
  }

  abstract void value(SpecializedGetters from, int i);

  /** Adds what a null has in the buffers of the values. */
  abstract void absent();

  /** The table of its type. */
  FlatWriter.Table type(FlatWriter w) {
    return w.table();
  }

  /** Adds its field to a schema, and returns it. */
  final FlatWriter.Table field(FlatWriter w) {
    FlatWriter.Table f = w.table(4, 1, 1, 4, 0, 4);
    f.setByte(1, nullable ? 1 : 0).setByte(2, kind.ordinal()).setString(0, name);
    f.setTable(3, type(w));
    int at = f.setVector(5, children.length);
    for (int i = 0; i < children.length; i++) {
      children[i].field(w).entry(at + 4 * i);
    }
    return f;
  }

  /** Adds the node and the buffers of a batch, in the order of Arrow. */
  final void collect(List<Filler> nodes, List<Bytes> buffers) {
    nodes.add(this);
    if (kind != Field.Kind.NULL) {
      buffers.add(valid);
      own(buffers);
    }
    for (Filler c : children) {
      c.collect(nodes, buffers);
    }
  }

  void own(List<Bytes> buffers) {
    buffers.add(values);
  }

  final int nulls() {
    return kind == Field.Kind.NULL ? length : nulls;
  }

  /** Bytes of the values so far, below it, too. */
  long size() {
    long n = values.length();
    for (Filler c : children) {
      n += c.size();
    }
    return n;
  }

  void clear() {
    length = nulls = 0;
    valid.clear();
    values.clear();
    for (Filler c : children) {
      c.clear();
    }
  }

  private static final class Nothing extends Filler {
    Nothing(String name, boolean nullable) {
      super(name, nullable, Field.Kind.NULL);
    }

    @Override void value(SpecializedGetters from, int i) {
      throw new IllegalStateException("a value of the null type");
    }

    @Override void absent() { }
  }

  private static final class Bools extends Filler {
    Bools(String name, boolean nullable) {
      super(name, nullable, Field.Kind.BOOL);
    }

    @Override void value(SpecializedGetters from, int i) {
      if (length % 8 == 1) { // the entry is counted
        values.putByte(0);
      }
      if (from.getBoolean(i)) {
        values.setBit(length - 1);
      }
    }

    @Override void absent() {
      if (length % 8 == 1) {
        values.putByte(0);
      }
    }
  }

  /** Everything of a fixed width but decimals and booleans. */
  private static final class Numbers extends Filler {
    private final int width;
    private boolean zoned;

    Numbers(String name, boolean nullable, Field.Kind kind, int width) {
      super(name, nullable, kind);
      this.width = width;
    }

    Numbers zoned() {
      zoned = true;
      return this;
    }

    @Override void value(SpecializedGetters from, int i) {
      switch (width) {
        case 1:
          values.putByte(from.getByte(i));
          break;
        case 2:
          values.putShort(from.getShort(i));
          break;
        case 4:
          values.putInt(kind == Field.Kind.FLOAT ? Float.floatToRawIntBits(from.getFloat(i)) : from.getInt(i));
          break;
        default:
          values.putLong(kind == Field.Kind.FLOAT ? Double.doubleToRawLongBits(from.getDouble(i)) : from.getLong(i));
      }
    }

    @Override void absent() {
      values.zeros(width);
    }

    @Override FlatWriter.Table type(FlatWriter w) {
      switch (kind) {
        case INT:
          return w.table(4, 1).setInt(0, 8 * width).setByte(1, 1);
        case FLOAT:
          return w.table(2).setShort(0, width == 4 ? 1 : 2);
        case TIMESTAMP:
          return zoned ? w.table(2, 4).setShort(0, Field.MICRO).setString(1, "UTC")
              : w.table(2).setShort(0, Field.MICRO);
        case DURATION:
          return w.table(2).setShort(0, Field.MICRO);
        default: // days, and months: both are 0, which is not the default of each
          return w.table(2).setShort(0, 0);
      }
    }
  }

  private static final class Intervals extends Filler {
    Intervals(String name, boolean nullable) {
      super(name, nullable, Field.Kind.INTERVAL);
    }

    @Override void value(SpecializedGetters from, int i) {
      CalendarInterval v = from.getInterval(i);
      values.putInt(v.months);
      values.putInt(v.days);
      values.putLong(Math.multiplyExact(v.microseconds, 1000L));
    }

    @Override void absent() {
      values.zeros(16);
    }

    @Override FlatWriter.Table type(FlatWriter w) {
      return w.table(2).setShort(0, 2); // months, days and nanoseconds
    }
  }

  private static final class Decimals extends Filler {
    private final int precision;
    private final int scale;

    Decimals(String name, boolean nullable, DecimalType t) {
      super(name, nullable, Field.Kind.DECIMAL);
      precision = t.precision();
      scale = t.scale();
    }

    @Override void value(SpecializedGetters from, int i) {
      BigInteger v = from.getDecimal(i, precision, scale).toJavaBigDecimal().setScale(scale).unscaledValue();
      values.putLong(v.longValue());
      values.putLong(v.shiftRight(64).longValue());
    }

    @Override void absent() {
      values.zeros(16);
    }

    @Override FlatWriter.Table type(FlatWriter w) {
      return w.table(4, 4, 4).setInt(0, precision).setInt(1, scale).setInt(2, 128);
    }
  }

  /** What has offsets: texts, lists, maps. */
  private abstract static class Ranges extends Filler {
    final Bytes offsets = new Bytes();

    Ranges(String name, boolean nullable, Field.Kind kind, Filler... children) {
      super(name, nullable, kind, children);
      offsets.putInt(0);
    }

    abstract int end();

    @Override void absent() {
      offsets.putInt(end());
    }

    @Override void own(List<Bytes> buffers) {
      buffers.add(offsets);
    }

    @Override void clear() {
      super.clear();
      offsets.clear();
      offsets.putInt(0);
    }
  }

  private static final class Texts extends Ranges {
    Texts(String name, boolean nullable, Field.Kind kind) {
      super(name, nullable, kind);
    }

    @Override int end() {
      return values.length();
    }

    @Override void value(SpecializedGetters from, int i) {
      byte[] b;
      if (kind == Field.Kind.BINARY) {
        b = from.getBinary(i);
      } else {
        UTF8String s = from.getUTF8String(i);
        b = s.getBytes();
      }
      values.put(b, 0, b.length);
      offsets.putInt(end());
    }

    @Override void own(List<Bytes> buffers) {
      super.own(buffers);
      buffers.add(values);
    }
  }

  private static final class Lists extends Ranges {
    Lists(String name, boolean nullable, Filler entries) {
      super(name, nullable, Field.Kind.LIST, entries);
    }

    @Override int end() {
      return children[0].length;
    }

    @Override void value(SpecializedGetters from, int i) {
      ArrayData a = from.getArray(i);
      for (int k = 0; k < a.numElements(); k++) {
        children[0].add(a, k);
      }
      offsets.putInt(end());
    }
  }

  private static final class Maps extends Ranges {
    Maps(String name, boolean nullable, Filler key, Filler value) {
      super(name, nullable, Field.Kind.MAP, new Structs("entries", false, key, value));
    }

    @Override int end() {
      return children[0].length;
    }

    @Override void value(SpecializedGetters from, int i) {
      MapData m = from.getMap(i);
      Filler entries = children[0];
      for (int k = 0; k < m.numElements(); k++) {
        entries.present();
        entries.children[0].add(m.keyArray(), k);
        entries.children[1].add(m.valueArray(), k);
      }
      offsets.putInt(end());
    }
  }

  private static final class Structs extends Filler {
    Structs(String name, boolean nullable, Filler... fields) {
      super(name, nullable, Field.Kind.STRUCT, fields);
    }

    @Override void value(SpecializedGetters from, int i) {
      SpecializedGetters row = from.getStruct(i, children.length);
      for (int k = 0; k < children.length; k++) {
        children[k].add(row, k);
      }
    }

    @Override void absent() {
      for (Filler c : children) {
        c.addAbsent();
      }
    }

    @Override void own(List<Bytes> buffers) { }
  }

  /** Writes a buffer, and zeros up to a multiple of eight bytes. */
  static void pad(Bytes b, OutputStream out) throws IOException {
    b.writeTo(out);
    out.write(new byte[(8 - b.length() % 8) % 8]);
  }
}
