package stoa.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The number of rows of a table, which its metadata has: one row, and no data is read. */
final class CountScan implements Scan, Batch {
  private final StoaTable table;
  private final Options options;

  CountScan(StoaTable table, Options options) {
    this.table = table;
    this.options = options;
  }

  @Override public StructType readSchema() {
    return DataTypes.createStructType(new StructField[] {
        DataTypes.createStructField("count(*)", DataTypes.LongType, false)});
  }

  @Override public String description() {
    return "stoa " + table.name() + ", the number of its rows";
  }

  @Override public Batch toBatch() {
    return this;
  }

  @Override public InputPartition[] planInputPartitions() {
    List<String> args = options.verb("count");
    args.add("--format=json");
    args.add("--");
    args.addAll(options.paths());
    Command.Answer a = table.command.run(args);
    StoaTable.check(a, options, "the number of rows of " + options.paths());
    try {
      long n = new ObjectMapper().readTree(a.text()).path("rows").asLong(-1);
      if (n < 0) {
        throw new IOException("there is no number");
      }
      return new InputPartition[] {new Count(n)};
    } catch (IOException e) {
      throw new StoaException(a.status, "the number of rows of " + options.paths() + ": " + e.getMessage(), e);
    }
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return new Counts();
  }

  static final class Count implements InputPartition {
    private static final long serialVersionUID = 1;
    final long rows;

    Count(long rows) {
      this.rows = rows;
    }
  }

  static final class Counts implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    @Override public PartitionReader<InternalRow> createReader(InputPartition p) {
      InternalRow row = new GenericInternalRow(new Object[] {((Count) p).rows});
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
