package stoa.spark;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;
import java.util.UUID;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import stoa.spark.arrow.ArrowWriter;

/**
 * A job that writes in two phases: each task stages its rows, which nobody sees, and the driver's commit makes those of
 * all tasks visible at once. Of several attempts of a task the one whose message reached the driver counts.
 */
final class StagedWrite implements WriteBuilder, SupportsTruncate, Write, BatchWrite {
  private static final Logger LOG = LoggerFactory.getLogger(StagedWrite.class);

  private final Command command;
  private final Options options;
  private final StructType schema;
  private final String job;
  private boolean overwrites;

  StagedWrite(Command command, Options options, LogicalWriteInfo info) {
    this.command = command;
    this.options = options;
    schema = info.schema();
    job = "spark-" + info.queryId() + "-" + UUID.randomUUID().toString().substring(0, 8);
    ArrowWriter.check(schema);
    options.target();
  }

  @Override public WriteBuilder truncate() {
    overwrites = true;
    return this;
  }

  @Override public Write build() {
    return this;
  }

  @Override public String description() {
    return "stoa " + options.target();
  }

  @Override public BatchWrite toBatch() {
    return this;
  }

  @Override public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return new StagedWriter.Factory(command, options.stage(job, overwrites), schema);
  }

  @Override public void commit(WriterCommitMessage[] messages) {
    StringBuilder winners = new StringBuilder();
    for (WriterCommitMessage m : messages) {
      winners.append(((StagedWriter.Staged) m).attempt).append('\n');
    }
    File file = null;
    try {
      file = File.createTempFile("stoa-winners", null);
      Files.write(file.toPath(), winners.toString().getBytes(StandardCharsets.US_ASCII));
      List<String> args = options.load();
      args.add("--commit=" + job);
      args.add("--winners=" + file);
      args.add("--");
      args.add(options.target());
      Command.Answer a = command.run(args);
      if (a.status != 0) {
        throw new StoaException(a.status, "the commit of " + job + ": " + a.errors);
      }
    } catch (IOException e) {
      throw new StoaException(-1, "the commit of " + job + ": " + e.getMessage(), e);
    } finally {
      if (file != null && !file.delete()) {
        LOG.warn("{} is left", file);
      }
    }
  }

  @Override public void abort(WriterCommitMessage[] messages) {
    List<String> args = options.load();
    args.add("--abort=" + job);
    args.add("--");
    args.add(options.target());
    Command.Answer a = command.run(args);
    if (a.status != 0) { // the reason why the job failed says more
      LOG.warn("what job {} staged is not removed, stoa load --abort-older does it: {}", job, a.errors);
    }
  }
}
