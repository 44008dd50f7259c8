package stoa.spark.arrow;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * An Arrow IPC stream. A stream that ends without its end mark is torn, and an EOFException: whoever wrote it did not
 * say that this was all.
 */
public final class ArrowStream {
  private static final int SCHEMA = 1, DICTIONARY = 2, BATCH = 3;
  private static final int MAX_METADATA = 1 << 28;

  private final InputStream in;
  private final Columns made;
  private final byte[] word = new byte[4];
  private final Map<Long, Field> dictionaryFields = new HashMap<>();
  private final Map<Long, Column> dictionaries = new HashMap<>();
  private byte[] body = new byte[0];
  private List<Field> fields;
  private boolean ended;
  private long bytes;

  public ArrowStream(InputStream in, Columns made) {
    this.made = made;
    this.in = in;
  }

  /** The fields of the stream, which stand before everything else. */
  public List<Field> schema() throws IOException {
    if (fields == null) {
      Flat m = message();
      if (m == null || m.byteAt(1, 0) != SCHEMA) {
        throw new IOException("an Arrow stream begins with its schema; this one does not");
      }
      fields = Field.ofSchema(m.table(2));
      for (Field f : fields) {
        note(f);
      }
      read(m.longAt(3, 0));
    }
    return fields;
  }

  private void note(Field f) {
    if (f.dictionary) {
      dictionaryFields.put(f.dictionaryId, f);
    }
    for (Field c : f.children) {
      note(c);
    }
  }

  /** Bytes that were read. */
  public long bytes() {
    return bytes;
  }

  /**
   * The number of rows of the next batch, which is in the columns then, and stays there until the next call; -1 after
   * the end mark.
   */
  public int next(Column[] into) throws IOException {
    schema();
    while (!ended) {
      Flat m = message();
      if (m == null) {
        ended = true;
        break;
      }
      Flat head = m.table(2);
      long length = m.longAt(3, 0);
      switch (m.byteAt(1, 0)) {
        case DICTIONARY:
          dictionary(head, length);
          break;
        case BATCH:
          read(length);
          return load(new Buffers(head, body, (int) length, dictionaries), head, into);
        default:
          throw new IOException("a message of kind " + m.byteAt(1, 0) + " in the middle of an Arrow stream");
      }
    }
    return -1;
  }

  private int load(Buffers b, Flat head, Column[] into) throws IOException {
    long rows = head.longAt(0, 0);
    if (rows < 0 || rows > Integer.MAX_VALUE) {
      throw new IOException("a batch of " + rows + " rows");
    }
    for (Column c : into) {
      c.load(b);
      if (c.length != rows) {
        throw new IOException("a column of " + c.length + " rows in a batch of " + rows);
      }
    }
    return (int) rows;
  }

  private void dictionary(Flat head, long length) throws IOException {
    Field f = dictionaryFields.get(head.longAt(0, 0));
    if (f == null || head.byteAt(2, 0) != 0) {
      throw new IOException(f == null ? "a dictionary of no column" : "a dictionary that grows");
    }
    byte[] shared = body;
    body = new byte[0]; // dictionaries outlive the batch
    read(length);
    Column values = made.values(f);
    values.load(new Buffers(head.table(1), body, (int) length, dictionaries));
    dictionaries.put(f.dictionaryId, values);
    body = shared;
  }

  /** The next message; null is the end mark. */
  private Flat message() throws IOException {
    int n = intOf();
    if (n == -1) {
      n = intOf();
    }
    if (n == 0) {
      return null;
    }
    if (n < 0 || n > MAX_METADATA) {
      throw new IOException("a message of Arrow with " + n + " bytes of metadata");
    }
    byte[] b = new byte[n];
    fill(b, n);
    return Flat.root(b);
  }

  private int intOf() throws IOException {
    fill(word, 4);
    return word[0] & 0xff | (word[1] & 0xff) << 8 | (word[2] & 0xff) << 16 | word[3] << 24;
  }

  private void read(long length) throws IOException {
    if (length < 0 || length > Integer.MAX_VALUE - 16) {
      throw new IOException("a batch of " + length + " bytes: option memory makes them smaller");
    }
    if (body.length < length) {
      body = new byte[(int) Math.min(Integer.MAX_VALUE - 16, length + length / 4)];
    }
    fill(body, (int) length);
  }

  private void fill(byte[] b, int n) throws IOException {
    for (int at = 0; at < n; ) {
      int k = in.read(b, at, n - at);
      if (k < 0) {
        throw new EOFException("the Arrow stream is torn: it ends without its end mark");
      }
      at += k;
      bytes += k;
    }
  }
}
