/**
 * Reads an Arrow IPC stream into Spark's column vectors, without Arrow's Java library.
 *
 * <p>Spark has that library, and {@code ArrowColumnVector} over it, but a jar for Spark 3.3 to 4.x would meet a
 * dozen releases of it (7 to 19), {@code ArrowColumnVector} of 3.3 knows neither unsigned numbers nor large strings
 * nor most units of time, and its buffers lie outside of the heap that Spark counts. What is needed of the format is
 * small: messages are FlatBuffers ({@link stoa.spark.arrow.Flat}), a schema is a tree of fields ({@link
 * stoa.spark.arrow.Field}), and a batch is one run of bytes in which columns point ({@link stoa.spark.arrow.Column}).
 */
package stoa.spark.arrow;
