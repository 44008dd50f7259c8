package stoa.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Counts, minima and maxima that a plan knows exactly: one row, and no data is read. */
final class KnownScan implements Scan, Batch {
  private static final ObjectMapper JSON = new ObjectMapper();
  private final String name;
  private final StructType schema;
  private final Object[] row;

  private KnownScan(String name, StructType schema, Object[] row) {
    this.name = name;
    this.schema = schema;
    this.row = row;
  }

  /** The scan; null if a plan does not know all of it. */
  static KnownScan of(StoaTable table, Options options, String where, Aggregation a) {
    if (!options.pushes() || options.takesLess() || a.groupByExpressions().length > 0) {
      return null;
    }
    TreeSet<String> names = new TreeSet<>();
    StructField[] fields = new StructField[a.aggregateExpressions().length];
    for (int i = 0; i < fields.length; i++) {
      AggregateFunc f = a.aggregateExpressions()[i];
      String column = column(f);
      StructField of = column == null ? null : find(table.schema(), column);
      DataType type = DataTypes.LongType;
      if (f instanceof Min || f instanceof Max) {
        type = of == null ? null : of.dataType();
      } else if (!(f instanceof CountStar) && (!(f instanceof Count) || ((Count) f).isDistinct() || of == null)) {
        return null;
      }
      if (!(f instanceof CountStar) && !takes(type)) {
        return null;
      }
      if (of != null) {
        names.add(Predicates.name(column));
      }
      fields[i] = DataTypes.createStructField(f.toString(), type, true);
    }
    try {
      List<JsonNode> splits = new ArrayList<>();
      for (Split s : new Plan(table, options, new ArrayList<>(names), where).large()) {
        splits.add(JSON.readTree(s.json));
      }
      Object[] row = new Object[fields.length];
      for (int i = 0; i < row.length; i++) {
        if (!fill(a.aggregateExpressions()[i], fields[i].dataType(), splits, row, i)) {
          return null;
        }
      }
      return new KnownScan(table.name(), DataTypes.createStructType(fields), row);
    } catch (IOException e) {
      throw new StoaException(0, "a plan of " + options.paths() + ": " + e.getMessage(), e);
    }
  }

  private static StructField find(StructType schema, String name) {
    for (StructField f : schema.fields()) {
      if (f.name().equals(name)) {
        return f;
      }
    }
    return null;
  }

  private static String column(AggregateFunc f) {
    Expression e = f instanceof Min ? ((Min) f).column() : f instanceof Max ? ((Max) f).column()
        : f instanceof Count ? ((Count) f).column() : null;
    String[] parts = e instanceof NamedReference ? ((NamedReference) e).fieldNames() : new String[0];
    return parts.length == 1 ? parts[0] : null;
  }

  private static boolean takes(DataType t) {
    return t != null && (t.equals(DataTypes.LongType) || t.equals(DataTypes.IntegerType)
        || t.equals(DataTypes.ShortType) || t.equals(DataTypes.ByteType) || t.equals(DataTypes.DateType) || t.equals(DataTypes.StringType));
  }

  /** Works out one aggregate; false if it is not known. */
  private static boolean fill(AggregateFunc f, DataType type, List<JsonNode> splits, Object[] row, int i) {
    boolean counts = f instanceof CountStar || f instanceof Count;
    long n = 0;
    Object best = null;
    for (JsonNode s : splits) {
      long rows = s.path("rows").asLong(-1);
      if (!s.path("exact").asBoolean(false) || rows < 0) {
        return false;
      }
      JsonNode b = f instanceof CountStar ? null : s.path("bounds").path(column(f));
      long nulls = b == null ? 0 : b.path("nulls").asLong(-1);
      if (counts) {
        if (nulls < 0) {
          return false;
        }
        n += rows - nulls;
        continue;
      }
      if (rows == 0 || nulls == rows) {
        continue;
      }
      Object v = b.path("exact").asBoolean(false) ? value(b.path(f instanceof Min ? "min" : "max"), type) : null;
      if (v == null) {
        return false;
      }
      @SuppressWarnings("unchecked") int c = best == null ? 0 : ((Comparable<Object>) v).compareTo(best);
      if (best == null || (f instanceof Min ? c < 0 : c > 0)) {
        best = v;
      }
    }
    row[i] = counts ? (Object) n : best;
    return true;
  }

  /** A value as Spark has it inside; null if it is of another kind. */
  private static Object value(JsonNode v, DataType type) {
    if (type.equals(DataTypes.StringType)) {
      return v.isTextual() ? UTF8String.fromString(v.asText()) : null;
    }
    if (type.equals(DataTypes.DateType)) {
      return v.has("date") ? (Object) (int) LocalDate.parse(v.get("date").asText()).toEpochDay() : null;
    }
    if (!v.has("int")) {
      return null;
    }
    long n = Long.parseLong(v.get("int").asText());
    return type.equals(DataTypes.LongType) ? (Object) n : type.equals(DataTypes.IntegerType) ? (Object) (int) n
        : type.equals(DataTypes.ShortType) ? (Object) (short) n : (Object) (byte) n;
  }

  @Override public StructType readSchema() {
    return schema;
  }

  @Override public String description() {
    return "stoa " + name + ", known from metadata: " + String.join(", ", schema.fieldNames());
  }

  @Override public Batch toBatch() {
    return this;
  }

  @Override public InputPartition[] planInputPartitions() {
    return new InputPartition[] {new Known(row)};
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return new Knowns();
  }

  static final class Known implements InputPartition {
    private static final long serialVersionUID = 1;
    final Object[] row;

    Known(Object[] row) {
      this.row = row;
    }
  }

  static final class Knowns implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    @Override public PartitionReader<InternalRow> createReader(InputPartition p) {
      InternalRow row = new GenericInternalRow(((Known) p).row);
      return new PartitionReader<InternalRow>() {
        private boolean read;

        @Override public boolean next() {
          boolean first = !read;
          read = true;
          return first;
        }

        @Override public InternalRow get() {
          return row;
        }

        @Override public void close() {}
      };
    }
  }
}
