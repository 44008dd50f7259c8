package stoa.spark;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads splits, on executors. */
final class Readers implements PartitionReaderFactory {
  private static final long serialVersionUID = 1;
  private final Command command;
  private final Options options;
  private final ArrayList<Shape> shown;
  private final int limit;
  private final ArrayList<Integer> order;

  Readers(Command command, Options options, ArrayList<Shape> shown, int limit, ArrayList<Integer> order) {
    this.command = command;
    this.options = options;
    this.shown = shown;
    this.limit = limit;
    this.order = order;
  }

  @Override public boolean supportColumnarReads(InputPartition p) {
    return true;
  }

  @Override public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition p) {
    if (((Split) p).json == null) {
      return new Nothing();
    }
    return new SplitReader(command, options, shown, limit, order, (Split) p);
  }

  /** No rows. */
  private static final class Nothing implements PartitionReader<ColumnarBatch> {
    @Override public boolean next() {
      return false;
    }

    @Override public ColumnarBatch get() {
      return null;
    }

    @Override public void close() {}
  }

  @Override public PartitionReader<InternalRow> createReader(InputPartition p) {
    throw new UnsupportedOperationException("splits are read as batches");
  }
}
