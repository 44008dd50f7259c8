package stoa.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A split of which all rows are in one bucket. That is what the table says; joins and groups rely on it, so each row is
 * compared with it. A bucket without rows has a split without JSON, so that tables have the same buckets whatever rows
 * are in them.
 */
final class BucketSplit extends Split implements HasPartitionKey {
  private static final long serialVersionUID = 1;
  private final Buckets buckets;
  private final int column; // of the batches

  BucketSplit(Split of, int bucket, Buckets buckets, int column) {
    super(of == null ? null : of.json, of == null ? 0 : of.rows, of == null ? 0 : of.bytes, bucket,
        of == null || of.tablet);
    this.buckets = buckets;
    this.column = column;
  }

  @Override public InternalRow partitionKey() {
    return new GenericInternalRow(new Object[] {bucket});
  }

  @Override void check(ColumnarBatch batch) {
    for (int i = 0; i < batch.numRows(); i++) {
      int found = buckets.of(batch.getRow(i), column);
      if (found != bucket) {
        throw new StoaException(-1, "a row of bucket " + bucket + " belongs to bucket " + found + " by "
            + buckets.name() + ": the table can be read without option bucketed");
      }
    }
  }
}
