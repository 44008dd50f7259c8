package stoa.spark;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import stoa.spark.arrow.ArrowWriter;

/**
 * Sends the rows of one attempt of a task to a command that stages them. Only {@link #commit} writes the end mark: what
 * ends otherwise is torn, and the command stages nothing of it.
 */
final class StagedWriter implements DataWriter<InternalRow> {
  /** Says that an attempt is staged. */
  static final class Staged implements WriterCommitMessage {
    private static final long serialVersionUID = 1;
    final long attempt;

    Staged(long attempt) {
      this.attempt = attempt;
    }
  }

  /** Makes the writers, on the executors. */
  static final class Factory implements DataWriterFactory {
    private static final long serialVersionUID = 1;
    private final Command command;
    private final ArrayList<String> args;
    private final StructType schema;

    Factory(Command command, List<String> args, StructType schema) {
      this.command = command;
      this.args = new ArrayList<>(args);
      this.schema = schema;
    }

    @Override public DataWriter<InternalRow> createWriter(int partition, long task) {
      List<String> all = new ArrayList<>();
      all.add(command.path());
      all.addAll(args);
      int flags = all.indexOf("--"); // the id of a task is that of one attempt
      all.add(flags, "--attempt=" + task);
      all.add(flags, "--task=" + partition);
      return new StagedWriter(all, schema, task);
    }
  }

  private final long attempt;
  private final Process process;
  private final Command.Errors errors;
  private final Watch watch;
  private final OutputStream to;
  private final ArrowWriter out;

  private StagedWriter(List<String> args, StructType schema, long attempt) {
    this.attempt = attempt;
    try {
      process = new ProcessBuilder(args).redirectOutput(new File("/dev/null")).start();
    } catch (IOException e) {
      throw new StoaException(-1, args.get(0) + ": " + e.getMessage(), e);
    }
    watch = new Watch(process, TaskContext.get());
    errors = new Command.Errors(process);
    to = new BufferedOutputStream(process.getOutputStream(), 1 << 16);
    out = new ArrowWriter(schema, to);
    try {
      out.begin();
    } catch (IOException e) {
      throw failed(e);
    }
  }

  @Override public void write(InternalRow row) throws IOException {
    try {
      out.add(row);
    } catch (IOException e) {
      throw failed(e);
    }
  }

  @Override public WriterCommitMessage commit() throws IOException {
    try {
      out.end();
      to.close();
    } catch (IOException e) {
      throw failed(e);
    }
    int status = ended();
    if (status != 0) {
      throw new StoaException(status, text());
    }
    return new Staged(attempt);
  }

  /** Why the command no longer reads. */
  private StoaException failed(IOException e) {
    return new StoaException(ended(), text() + " (" + e.getMessage() + ")", e);
  }

  private int ended() {
    try {
      return process.waitFor();
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

  @Override public void abort() {
    process.destroyForcibly();
  }

  @Override public void close() {
    watch.end();
    process.destroyForcibly();
  }
}
