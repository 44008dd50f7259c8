package stoa.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/** A split, as plan wrote it. */
final class Split implements InputPartition {
  private static final long serialVersionUID = 1;
  final String json;
  final long rows;
  final long bytes;

  Split(String json, long rows, long bytes) {
    this.json = json;
    this.rows = rows;
    this.bytes = bytes;
  }
}
