package stoa.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import stoa.spark.arrow.ArrowStream;
import stoa.spark.arrow.Column;
import stoa.spark.arrow.Columns;
import stoa.spark.arrow.Field;

/**
 * Runs scan on one split. The rows are whole only if the stream has its end mark and the command its status: anything
 * else fails the task, and Spark reads the split again.
 */
final class SplitReader implements PartitionReader<ColumnarBatch> {
  private static final Logger LOG = LoggerFactory.getLogger(SplitReader.class);

  private final Options options;
  private final List<Shape> expected;
  private final Split split;
  private final Process process;
  private final Command.Errors errors;
  private final ArrowStream in;
  private final Watch watch;
  private final ArrayList<Integer> ordered; // columns by which the rows are ordered
  private Order order;
  private Column[] columns;
  private ColumnarBatch batch;
  private long left; // rows until the limit
  private boolean ended;
  private boolean losing;
  private JsonNode work = MissingNode.getInstance(); // of the command, when it has ended: pages, bytes

  SplitReader(Command command, Options options, List<Shape> expected, int limit, ArrayList<Integer> order,
      Split split) {
    this.options = options;
    this.expected = expected;
    this.split = split;
    ordered = order;
    left = limit < 0 ? Long.MAX_VALUE : limit;
    List<String> args = new ArrayList<>();
    args.add(command.path());
    args.addAll(options.scan());
    try {
      process = new ProcessBuilder(args).start();
    } catch (IOException e) {
      throw new StoaException(-1, command.path() + ": " + e.getMessage(), e);
    }
    watch = new Watch(process, TaskContext.get());
    errors = new Command.Errors(process);
    in = new ArrowStream(process.getInputStream(), new Columns(options.truncates()));
    try (OutputStream to = process.getOutputStream()) {
      to.write(split.json.getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      LOG.debug("the command does not read its split", e); // its status says why
    }
  }

  @Override public boolean next() throws IOException {
    if (ended) {
      return false;
    }
    int n;
    try {
      if (batch == null) {
        begin();
      }
      n = left == 0 ? -1 : in.next(columns);
    } catch (EOFException e) {
      throw torn(e);
    } catch (IOException | RuntimeException e) {
      throw new StoaException(-1, "the stream of a split: " + e.getMessage(), e);
    }
    if (n < 0) {
      ended = true;
      if (left > 0) {
        finish();
      }
      return false;
    }
    n = (int) Math.min(n, left);
    left -= left == Long.MAX_VALUE ? 0 : n;
    batch.setNumRows(n);
    split.check(batch);
    order.check(batch);
    return true;
  }

  /** Makes the columns, as the stream has them, and compares their types with those that were planned. */
  private void begin() throws IOException {
    List<Field> fields = in.schema();
    Columns made = new Columns(options.truncates());
    columns = made.all(fields);
    ColumnVector[] shown = new ColumnVector[expected.size()];
    for (int i = 0; i < shown.length; i++) {
      shown[i] = expected.get(i).over(columns, made);
    }
    batch = new ColumnarBatch(shown);
    DataType[] types = new DataType[shown.length];
    for (int i = 0; i < types.length; i++) {
      types[i] = shown[i].dataType();
    }
    order = new Order(ordered, types);
  }

  /** The status of the command, after the end mark. */
  private void finish() {
    int status = status();
    if (status == 3) {
      losing = true;
      if (!options.takesLess()) {
        throw new StoaException(3, "the table is known to be incomplete: " + text());
      }
      LOG.warn("a split is read, but not all of it: {}", text());
    } else if (status != 0) {
      throw new StoaException(status, text());
    }
    try {
      JsonNode said = errors.work();
      work = said == null ? work : said;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private int status() {
    try {
      if (!process.waitFor(60, TimeUnit.SECONDS)) {
        throw new StoaException(-1, "the command wrote all of its stream, and does not end");
      }
      return process.exitValue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoaException(-1, "the task was interrupted", e);
    }
  }

  private String text() {
    try {
      return errors.text();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "it was interrupted";
    }
  }

  private StoaException torn(EOFException e) {
    int status = status();
    String why = text();
    if (status > 128) {
      why = "the command was ended by signal " + (status - 128) + "; " + why;
    }
    return new StoaException(status, why + " (" + e.getMessage() + ")", e);
  }

  @Override public ColumnarBatch get() {
    return batch;
  }

  @Override public CustomTaskMetric[] currentMetricsValues() {
    return new CustomTaskMetric[] {Metrics.value("stoaBytesStored", split.bytes),
        Metrics.value("stoaBytesReceived", in.bytes()), Metrics.value("stoaSplits", 1),
        Metrics.value("stoaBytesRead", work.path("bytes").asLong()),
        Metrics.value("stoaPagesRead", work.path("pages").path("read").asLong()),
        Metrics.value("stoaPagesSkipped", work.path("pages").path("skipped").asLong()),
        Metrics.value("stoaLosing", losing ? 1 : 0)};
  }

  @Override public void close() throws IOException {
    watch.end();
    process.destroyForcibly();
    try {
      process.waitFor(10, TimeUnit.SECONDS); // no zombie is left, nor does it hold its files any longer
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    process.getInputStream().close();
  }
}
