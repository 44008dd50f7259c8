package stoa.spark;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import stoa.spark.arrow.ArrowStream;
import stoa.spark.arrow.Columns;
import stoa.spark.arrow.Field;

/** A table: its columns, and how they are read and written. */
public final class StoaTable implements Table, SupportsRead, SupportsWrite {
  final Options options;
  final Command command;
  final List<Field> fields; // null: nobody asked the table for them
  private final StructType schema;

  private StoaTable(Options options, Command command, List<Field> fields, StructType schema) {
    this.options = options;
    this.command = command;
    this.fields = fields;
    this.schema = schema;
  }

  /** A table of which Spark says the schema: one that is written, and may not be there yet. */
  static StoaTable said(Options o, StructType schema) {
    return new StoaTable(o, Command.find(o.get("command", null)), null, schema);
  }

  /** Opens what the options name. */
  static StoaTable open(Options o) {
    Command c = Command.find(o.get("command", null));
    List<String> args = o.verb("schema");
    args.add("--format=arrow");
    args.add("--");
    args.addAll(o.paths());
    Command.Answer a = c.run(args);
    check(a, o, "the schema of " + o.paths());
    try {
      ArrowStream in = new ArrowStream(new ByteArrayInputStream(a.out), new Columns(o.truncates()));
      List<Field> fields = chosen(in.schema(), o.get("columns", null));
      return new StoaTable(o, c, fields, new Columns(o.truncates()).schema(fields));
    } catch (IOException e) {
      throw new StoaException(a.status, "the schema of " + o.paths() + ": " + e.getMessage(), e);
    }
  }

  /** Fields that option columns names; all without it. */
  private static List<Field> chosen(List<Field> all, String names) {
    if (names == null) {
      return all;
    }
    List<String> wanted = Arrays.asList(names.split(","));
    List<Field> out = new ArrayList<>();
    for (Field f : all) {
      if (wanted.contains(f.name)) {
        out.add(f);
      }
    }
    if (out.size() < wanted.size()) {
      throw new IllegalArgumentException("option columns: not all of " + wanted + " are top-level columns");
    }
    return out;
  }

  /** Status 0, or 3 if less than all was asked for. */
  static void check(Command.Answer a, Options o, String what) {
    if (a.status == 3 && !o.takesLess() && !a.errors.contains("\nstoa: ") && !a.errors.startsWith("stoa: ")) {
      throw new StoaException(3, what + ": the table is known to be incomplete: " + a.errors
          + "\n.option(\"partial\", \"true\") or .option(\"damaged\", \"skip-rows\") reads what is there");
    }
    if (a.status != 0 && (a.status != 3 || !o.takesLess())) {
      throw new StoaException(a.status, a.errors);
    }
  }

  @Override public String name() {
    return String.join(",", options.paths());
  }

  @Override @SuppressWarnings("deprecation") public StructType schema() {
    return schema;
  }

  @Override public Set<TableCapability> capabilities() {
    // What columns a table takes, stoa says.
    return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE,
        TableCapability.ACCEPT_ANY_SCHEMA, TableCapability.MICRO_BATCH_READ);
  }

  @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    Options o = options.with(more.asCaseSensitiveMap());
    if (fields != null) {
      return new Builder(this, o);
    }
    StoaTable real = open(o);
    if (!real.schema.catalogString().equals(schema.catalogString())) {
      throw new IllegalArgumentException("the table has a schema of its own, " + real.schema.catalogString()
          + ", and not " + schema.catalogString());
    }
    return new Builder(real, o);
  }

  @Override public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new StagedWrite(command, options.with(info.options().asCaseSensitiveMap()), info);
  }
}
