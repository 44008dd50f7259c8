package stoa.spark.arrow;

import java.io.IOException;
import java.util.Map;

/** What a batch consists of, in the order in which its columns take it. */
final class Buffers {
  final byte[] body;
  final Map<Long, Column> dictionaries;
  private final Flat head;
  private final int bodyLength;
  private int node;
  private int buffer;
  private int variadic;
  int length; // of the buffer that was taken last
  long nulls; // of the node that was taken last

  Buffers(Flat head, byte[] body, int bodyLength, Map<Long, Column> dictionaries) throws IOException {
    this.head = head;
    this.body = body;
    this.bodyLength = bodyLength;
    this.dictionaries = dictionaries;
    if (head.has(3)) {
      throw new IOException("an Arrow stream with compressed buffers");
    }
  }

  /** The number of entries of the next node. */
  int node() throws IOException {
    if (node >= head.length(1)) {
      throw new IOException("a batch with too few nodes");
    }
    long n = head.pair(1, node, 0);
    nulls = head.pair(1, node++, 1);
    if (n < 0 || n > Integer.MAX_VALUE || nulls < 0 || nulls > n) {
      throw new IOException("a column of " + n + " rows, " + nulls + " null");
    }
    return (int) n;
  }

  /** Where the next buffer begins, of at least so many bytes. */
  int buffer(long atLeast) throws IOException {
    if (buffer >= head.length(2)) {
      throw new IOException("a batch with too few buffers");
    }
    long at = head.pair(2, buffer, 0);
    long n = head.pair(2, buffer++, 1);
    if (at < 0 || n < 0 || at > bodyLength || n > bodyLength - at || n < atLeast) {
      throw new IOException("a buffer of " + n + " bytes at " + at + " of " + bodyLength + ", expected at least "
          + atLeast);
    }
    length = (int) n;
    return (int) at;
  }

  /** How many further buffers the next view has. */
  int views() throws IOException {
    if (variadic >= head.length(4)) {
      throw new IOException("a batch with too few counts of buffers");
    }
    return (int) head.longEntry(4, variadic++);
  }
}
