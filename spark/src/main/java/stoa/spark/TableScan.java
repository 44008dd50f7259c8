package stoa.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeFiltering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import stoa.spark.arrow.Columns;
import stoa.spark.arrow.Field;

/** Some columns of a table, and the rows for which a predicate is true. */
class TableScan implements Scan, Batch, SupportsReportStatistics, SupportsRuntimeFiltering,
    SupportsReportPartitioning {
  private final StoaTable table;
  private final Options options;
  private final List<Field> fields = new ArrayList<>();
  private final ArrayList<Shape> shown = new ArrayList<>();
  private final List<String> read = new ArrayList<>(); // at least one: rows have to be counted
  private final String where;
  private final int limit; // of the rows of each split; -1: all
  private String runtime = "";
  private Plan plan;

  TableScan(StoaTable table, Options options, StructType required, String where, int limit) {
    this.table = table;
    this.options = options;
    this.where = where;
    this.limit = limit;
    for (StructField wanted : required.fields()) {
      for (Field f : table.fields) {
        if (f.name.equals(wanted.name())) {
          fields.add(f);
          shown.add(Shape.of(f, wanted.dataType(), read));
          break;
        }
      }
    }
    if (shown.isEmpty() && !table.fields.isEmpty()) {
      read.add(Predicates.name(cheapest(table.fields).name));
    }
  }

  /** A column of which little has to be read. */
  private static Field cheapest(List<Field> all) {
    Field best = all.get(0);
    for (Field f : all) {
      boolean small = f.kind == Field.Kind.BOOL || f.kind == Field.Kind.INT || f.kind == Field.Kind.DATE;
      if (small && (best.kind != Field.Kind.BOOL && best.bits == 0 || f.bits < best.bits)) {
        best = f;
      }
    }
    return best;
  }

  private Plan plan() {
    if (plan == null) {
      String all = runtime.isEmpty() ? where : where.isEmpty() ? runtime : where + " and " + runtime;
      plan = new Plan(table, options, read, all);
    }
    return plan;
  }

  @Override public StructType readSchema() {
    Columns made = new Columns(options.truncates());
    StructField[] out = new StructField[shown.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = shown.get(i).named(made);
    }
    return DataTypes.createStructType(out);
  }

  @Override public String description() {
    return "stoa " + table.name() + ", columns " + (shown.isEmpty() ? "none" : String.join(",", read))
        + (where.isEmpty() ? "" : ", where " + where) + (limit < 0 ? "" : ", limit " + limit);
  }

  @Override public Batch toBatch() {
    if (options.streams()) {
      throw new IllegalArgumentException("options since and changes are for streams: spark.readStream");
    }
    return this;
  }

  @Override public MicroBatchStream toMicroBatchStream(String checkpoint) {
    return new SegmentStream(table, options, read, where,
        new Readers(table.command, options, shown, limit, new ArrayList<>()));
  }

  @Override public InputPartition[] planInputPartitions() {
    List<Split> all = plan().splits();
    int column = bucketColumn();
    if (column < 0) {
      return all.toArray(new InputPartition[0]);
    }
    Buckets b = buckets(column);
    List<InputPartition> out = new ArrayList<>();
    boolean[] there = new boolean[b.count()];
    for (Split s : all) {
      there[s.bucket] = true;
      out.add(new BucketSplit(s, s.bucket, b, column));
    }
    for (int i = 0; i < there.length; i++) {
      if (!there[i]) {
        out.add(new BucketSplit(null, i, b, column));
      }
    }
    return out.toArray(new InputPartition[0]);
  }

  /** The column of the batches by which the rows are in buckets that Spark can be told of; -1: there is none. */
  private int bucketColumn() {
    String by = options.bucketed() ? plan().bucketColumn() : null;
    for (int i = 0; i < fields.size() && by != null; i++) {
      if (fields.get(i).name.equals(by) && buckets(i) != null) {
        return i;
      }
    }
    return -1;
  }

  private Buckets buckets(int column) {
    return Buckets.of(plan().bucketHash(), plan().bucketCount(), readSchema().fields()[column].dataType());
  }

  /** In a catalog, which has the function. */
  @Override public Partitioning outputPartitioning() {
    int column = bucketColumn();
    if (column < 0) {
      return new UnknownPartitioning(0);
    }
    Buckets b = buckets(column);
    return new KeyGroupedPartitioning(new Expression[] {Expressions.apply(b.name(), reference(column))}, b.count());
  }

  /** A column of the batches. */
  final NamedReference reference(int column) {
    return Expressions.column("`" + fields.get(column).name.replace("`", "``") + "`");
  }

  /** The columns of the batches by which the rows of each split are ordered; none: no order is promised. */
  final ArrayList<Integer> order() {
    return Order.in(readSchema(), plan().order());
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return new Readers(table.command, options, shown, limit, order());
  }

  @Override public Statistics estimateStatistics() {
    long bytes = plan().bytes();
    long rows = plan().rows();
    return new Statistics() {
      @Override public OptionalLong sizeInBytes() {
        return OptionalLong.of(bytes);
      }

      @Override public OptionalLong numRows() {
        return rows < 0 ? OptionalLong.empty() : OptionalLong.of(rows);
      }
    };
  }

  @Override public CustomMetric[] supportedCustomMetrics() {
    return new CustomMetric[] {new Metrics.Stored(), new Metrics.Received(), new Metrics.Read(),
        new Metrics.PagesRead(), new Metrics.PagesSkipped(), new Metrics.Splits(), new Metrics.Losing()};
  }

  @Override public NamedReference[] filterAttributes() {
    List<NamedReference> out = new ArrayList<>();
    for (Field f : fields) {
      if (options.pushes() && RuntimeFilters.takes(f)) {
        out.add(Expressions.column("`" + f.name.replace("`", "``") + "`"));
      }
    }
    return out.toArray(new NamedReference[0]);
  }

  @Override public void filter(Filter[] filters) {
    runtime = RuntimeFilters.text(filters, fields);
    plan = null;
  }

  @Override public boolean equals(Object o) {
    if (!(o instanceof TableScan)) {
      return false;
    }
    TableScan s = (TableScan) o;
    return options.equals(s.options) && read.equals(s.read) && readSchema().equals(s.readSchema())
        && where.equals(s.where) && limit == s.limit && runtime.equals(s.runtime);
  }

  @Override public int hashCode() {
    return options.hashCode() + 31 * read.hashCode() + where.hashCode();
  }
}
