package stoa.spark;

import java.util.ArrayList;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The order of the rows of a split, which joins rely on, so each row is compared with the one before it. Values compare
 * as Spark compares them.
 */
final class Order {
  private static final boolean REPORTED = isThere("org.apache.spark.sql.connector.read.SupportsReportOrdering");

  private final ArrayList<Integer> columns; // of the batches
  private final DataType[] types;
  private Object[] last;

  Order(ArrayList<Integer> columns, DataType[] all) {
    this.columns = columns;
    types = new DataType[columns.size()];
    for (int i = 0; i < types.length; i++) {
      types[i] = all[columns.get(i)];
    }
  }

  private static boolean isThere(String name) {
    try {
      Class.forName(name);
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }

  /** Whether this Spark can be told of an order. */
  static boolean reported() {
    return REPORTED;
  }

  /** The columns by which rows are ordered: the named ones, up to one that is missing or that Spark orders otherwise. */
  static ArrayList<Integer> in(StructType schema, Iterable<String> names) {
    ArrayList<Integer> out = new ArrayList<>();
    for (String name : names) {
      int k = -1;
      StructField[] fields = schema.fields();
      for (int i = 0; i < fields.length; i++) {
        if (fields[i].name().equals(name) && takes(fields[i].dataType())) {
          k = i;
        }
      }
      if (k < 0) {
        break;
      }
      out.add(k);
    }
    return out;
  }

  /** Types of keys, and their equals. Not floats: Spark's order of -0.0 and NaN is not that of all formats. */
  private static boolean takes(DataType t) {
    return t.equals(DataTypes.ByteType) || t.equals(DataTypes.ShortType) || t.equals(DataTypes.IntegerType)
        || t.equals(DataTypes.LongType) || t.equals(DataTypes.DateType) || t.equals(DataTypes.TimestampType)
        || t.equals(DataTypes.StringType) || t.equals(DataTypes.BinaryType) || t instanceof DecimalType;
  }

  void check(ColumnarBatch batch) {
    for (int row = 0; row < batch.numRows() && types.length > 0; row++) {
      Object[] now = new Object[types.length];
      int sign = 0;
      for (int i = 0; i < types.length; i++) {
        now[i] = value(batch.column(columns.get(i)), row, types[i]);
        sign = sign == 0 && last != null ? compare(last[i], now[i]) : sign;
      }
      if (sign > 0) {
        throw new StoaException(-1, "a row is not in the order that the plan promises: the table can be read without "
            + "option ordered");
      }
      last = now;
    }
    for (int i = 0; last != null && i < last.length; i++) { // strings are in the batch, which is filled anew
      last[i] = last[i] instanceof UTF8String ? ((UTF8String) last[i]).copy() : last[i];
    }
  }

  private static Object value(ColumnVector c, int row, DataType t) {
    if (c.isNullAt(row)) {
      return null;
    }
    if (t instanceof DecimalType) {
      return c.getDecimal(row, ((DecimalType) t).precision(), ((DecimalType) t).scale());
    }
    return t.equals(DataTypes.ByteType) ? (Object) c.getByte(row)
        : t.equals(DataTypes.ShortType) ? (Object) c.getShort(row)
        : t.equals(DataTypes.IntegerType) || t.equals(DataTypes.DateType) ? (Object) c.getInt(row)
        : t.equals(DataTypes.StringType) ? c.getUTF8String(row)
        : t.equals(DataTypes.BinaryType) ? UTF8String.fromBytes(c.getBinary(row)) : (Object) c.getLong(row);
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static int compare(Object a, Object b) {
    return a == null || b == null ? (a == null ? 0 : 1) - (b == null ? 0 : 1) : ((Comparable) a).compareTo(b);
  }
}
