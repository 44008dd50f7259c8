package stoa.spark.arrow;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Writes rows of Spark as an Arrow IPC stream. Without {@link #end} the stream has no end mark, and is torn. */
public final class ArrowWriter {
  private static final int V5 = 4;
  private static final int MOST_ROWS = 16 << 10;
  private static final long MOST_BYTES = 8 << 20;

  private final OutputStream out;
  private final Filler[] columns;
  private int rows;

  public ArrowWriter(StructType schema, OutputStream out) {
    this.out = out;
    columns = Filler.all(schema);
  }

  /** Throws an UnsupportedOperationException that names the column, if Arrow streams of ours lack a type. */
  public static void check(StructType schema) {
    Filler.all(schema);
  }

  /** Writes the schema, with which a stream begins. */
  public void begin() throws IOException {
    FlatWriter w = new FlatWriter();
    FlatWriter.Table message = w.table(2, 1, 4, 8).root().setShort(0, V5).setByte(1, 1);
    FlatWriter.Table schema = w.table(0, 4);
    message.setTable(2, schema);
    int at = schema.setVector(1, columns.length);
    for (int i = 0; i < columns.length; i++) {
      columns[i].field(w).entry(at + 4 * i);
    }
    write(w);
  }

  /** Adds a row. */
  public void add(InternalRow row) throws IOException {
    for (int i = 0; i < columns.length; i++) {
      columns[i].add(row, i);
    }
    rows++;
    if (rows == MOST_ROWS || rows % 64 == 0 && size() > MOST_BYTES) {
      batch();
    }
  }

  private long size() {
    long n = 0;
    for (Filler c : columns) {
      n += c.size();
    }
    return n;
  }

  private void batch() throws IOException {
    if (rows == 0) {
      return;
    }
    List<Filler> nodes = new ArrayList<>();
    List<Bytes> buffers = new ArrayList<>();
    for (Filler c : columns) {
      c.collect(nodes, buffers);
    }
    long[] counts = new long[2 * nodes.size()];
    for (int i = 0; i < nodes.size(); i++) {
      counts[2 * i] = nodes.get(i).length;
      counts[2 * i + 1] = nodes.get(i).nulls();
    }
    long[] places = new long[2 * buffers.size()];
    long end = 0;
    for (int i = 0; i < buffers.size(); i++) {
      places[2 * i] = end;
      places[2 * i + 1] = buffers.get(i).length();
      end += (places[2 * i + 1] + 7) / 8 * 8;
    }
    FlatWriter w = new FlatWriter();
    FlatWriter.Table message = w.table(2, 1, 4, 8).root().setShort(0, V5).setByte(1, 3).setLong(3, end);
    FlatWriter.Table batch = w.table(8, 4, 4).setLong(0, rows);
    message.setTable(2, batch);
    batch.setPairs(1, counts).setPairs(2, places);
    write(w);
    for (Bytes b : buffers) {
      Filler.pad(b, out);
    }
    for (Filler c : columns) {
      c.clear();
    }
    rows = 0;
  }

  private void write(FlatWriter w) throws IOException {
    w.out.align(8);
    Bytes head = new Bytes();
    head.putInt(-1);
    head.putInt(w.out.length());
    head.writeTo(out);
    w.out.writeTo(out);
  }

  /** Writes the rest and the end mark. */
  public void end() throws IOException {
    batch();
    Bytes mark = new Bytes();
    mark.putInt(-1);
    mark.putInt(0);
    mark.writeTo(out);
    out.flush();
  }
}
