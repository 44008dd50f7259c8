/**
 * A data source for Spark 3.3 to 4.x over the command {@code stoa}: {@code plan} cuts a scan into splits, each task
 * runs {@code scan} on one and reads the Arrow stream that it writes. Rows go the other way as an Arrow stream to
 * {@code load --stage}, and {@code load --commit} shows them. docs/spark.md and docs/splits.md say more.
 *
 * <p>Of Spark only interfaces written in Java are implemented, and nothing of Scala's collections is touched, so that
 * one jar fits Scala 2.12 and 2.13. What came after Spark 3.3 cannot be named here.
 */
package stoa.spark;
