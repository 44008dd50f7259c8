package stoa.spark.arrow;

import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Which column of Spark a field of Arrow is. The types are those of {@code stoa schema -f ddl --dialect spark}. */
public final class Columns {
  /** Times without a zone: Spark has them from 3.4 on; before, its Parquet reader took them for UTC, and so do we. */
  private static final DataType NAIVE = naive();

  private final boolean truncate;

  /** If truncate, nanoseconds are cut off; else they are an error. */
  public Columns(boolean truncate) {
    this.truncate = truncate;
  }

  private static DataType naive() {
    try {
      return (DataType) DataTypes.class.getField("TimestampNTZType").get(null);
    } catch (ReflectiveOperationException e) {
      return DataTypes.TimestampType;
    }
  }

  /** The schema of Spark that fields are. */
  public StructType schema(List<Field> fields) {
    StructField[] out = new StructField[fields.size()];
    for (int i = 0; i < out.length; i++) {
      Field f = fields.get(i);
      out[i] = DataTypes.createStructField(f.name, of(f).dataType(), f.nullable);
    }
    return DataTypes.createStructType(out);
  }

  public Column[] all(List<Field> fields) {
    Column[] out = new Column[fields.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = of(fields.get(i));
    }
    return out;
  }

  /** A struct of columns that are read by themselves, null where witness is; null: it never is. */
  public static Column assembled(DataType type, Column[] parts, Column witness) {
    return new Nested.Assembled(type, parts, witness);
  }

  /** The column of a field. */
  public Column of(Field f) {
    return f.dictionary ? new Nested.Dictionary(values(f).dataType(), f) : values(f);
  }

  /** The column of a field's values, whether there is a dictionary or not. */
  Column values(Field f) {
    switch (f.kind) {
      case NULL: return new Numbers.Null();
      case BOOL: return new Numbers.Bool();
      case INT: return integer(f);
      case FLOAT:
        return f.bits == 16 ? new Numbers.Half() : f.bits == 32 ? new Numbers.Float32() : new Numbers.Float64();
      case DECIMAL: return decimal(f);
      case UTF8: return new Texts.Short(DataTypes.StringType);
      case BINARY: return new Texts.Short(DataTypes.BinaryType);
      case LARGE_UTF8: return new Texts.Large(DataTypes.StringType);
      case LARGE_BINARY: return new Texts.Large(DataTypes.BinaryType);
      case UTF8_VIEW: return new Texts.View(DataTypes.StringType);
      case BINARY_VIEW: return new Texts.View(DataTypes.BinaryType);
      case FIXED_BINARY: return new Texts.Fixed(f.width);
      case DATE: return f.bits == 32 ? new Numbers.Int32(DataTypes.DateType) : new Numbers.Coarse(NAIVE, 1000);
      case TIME: return f.bits == 32 ? new Numbers.Int32(DataTypes.IntegerType) : new Numbers.Int64(DataTypes.LongType);
      case TIMESTAMP: return instants(f, f.zoned ? DataTypes.TimestampType : NAIVE);
      case DURATION: return new Numbers.Int64(DataTypes.LongType);
      case INTERVAL: return interval(f);
      default: return nested(f);
    }
  }

  private static Column integer(Field f) {
    switch (f.bits) {
      case 8: return f.signed ? new Numbers.Int8() : new Numbers.Uint8();
      case 16: return f.signed ? new Numbers.Int16() : new Numbers.Uint16();
      case 32: return f.signed ? new Numbers.Int32(DataTypes.IntegerType) : new Numbers.Uint32();
      default: return f.signed ? new Numbers.Int64(DataTypes.LongType) : new Numbers.Uint64();
    }
  }

  /** Spark's decimals have 38 digits and no negative scale; what does not fit is text. */
  private static Column decimal(Field f) {
    int scale = Math.max(f.scale, 0);
    int digits = Math.max(f.precision + scale - f.scale, scale);
    if (f.scale > 0) {
      digits = Math.max(f.precision, f.scale);
    }
    DataType t = digits <= 38 ? DataTypes.createDecimalType(digits, scale) : DataTypes.StringType;
    return new Numbers.Decimals(t, f.bits / 8, f.scale, f.precision);
  }

  private Column instants(Field f, DataType type) {
    switch (f.unit) {
      case Field.SECOND: return new Numbers.Coarse(type, 1_000_000);
      case Field.MILLI: return new Numbers.Coarse(type, 1000);
      case Field.MICRO: return new Numbers.Int64(type);
      default: return new Numbers.Nanos(type, f.name, truncate);
    }
  }

  private Column interval(Field f) {
    switch (f.unit) {
      case 0: return new Numbers.Int32(DataTypes.createYearMonthIntervalType());
      case 1: return new Numbers.DayTime(DataTypes.createDayTimeIntervalType());
      default: return new Numbers.Interval(f.name, truncate);
    }
  }

  private Column nested(Field f) {
    switch (f.kind) {
      case STRUCT: return new Nested.Struct(schema(f.children), all(f.children).clone());
      case LIST: return list(f, 4);
      case LARGE_LIST: return list(f, 8);
      case FIXED_LIST: return list(f, 0);
      case MAP:
        Field kv = f.children.get(0);
        Column entries = of(kv);
        return new Nested.Lists(DataTypes.createMapType(entries.getChild(0).dataType(), entries.getChild(1).dataType(),
            kv.children.get(1).nullable), 4, 0, entries);
      default:
        throw new UnsupportedOperationException("column " + f.name + ": Spark has no type for Arrow's " + f.typeName()
            + "; the other columns can be read with .option(\"columns\", …)");
    }
  }

  private Column list(Field f, int width) {
    Field entry = f.children.get(0);
    Column entries = of(entry);
    return new Nested.Lists(DataTypes.createArrayType(entries.dataType(), entry.nullable), width, f.width, entries);
  }
}
