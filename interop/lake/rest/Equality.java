import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.*;
import org.apache.iceberg.data.*;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.deletes.*;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.*;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.types.*;

/** Writes tables with equality deletes by Iceberg's own library, as Flink does, and what that library reads of each
 * snapshot: DIR/NAME and DIR/NAME.json, which spark.py's tables have, too. usage: Equality DIR NAME SEED PARTITIONED [3]
 * With 3 the tables are of version 3, and columns that are added have default values in the older files. */
public class Equality {
  static Schema schema = new Schema(Types.NestedField.optional(1, "id", Types.LongType.get()),
      Types.NestedField.optional(2, "s", Types.StringType.get()), Types.NestedField.optional(3, "d", Types.DateType.get()),
      Types.NestedField.optional(4, "n", Types.DecimalType.of(9, 2)), Types.NestedField.optional(5, "p", Types.IntegerType.get()));
  static Table table;
  static Random random;
  static int files;

  static Record draw(int p) {
    Record r = GenericRecord.create(schema);
    r.setField("id", random.nextInt(9) == 0 ? null : (Long) (long) random.nextInt(40));
    r.setField("s", random.nextInt(4) == 0 ? null : "s" + random.nextInt(5));
    r.setField("d", random.nextInt(5) == 0 ? null : java.time.LocalDate.of(2024, 1, 1).plusDays(random.nextInt(6)));
    r.setField("n", random.nextInt(5) == 0 ? null : new java.math.BigDecimal(random.nextInt(8) - 4).movePointLeft(2));
    r.setField("p", p);
    if (schema.findField("e") != null) r.setField("e", random.nextInt(3) == 0 ? null : (Object) random.nextInt(3));
    for (Types.NestedField f : schema.columns()) {
      if (f.initialDefault() == null || f.name().equals("e")) continue;
      Object v = GenericDataUtil.internalToGeneric(f.type(), f.initialDefault());
      r.setField(f.name(), random.nextInt(3) == 0 ? null : v);
    }
    if (schema.findField("st") == null || random.nextInt(4) == 0) return r;
    GenericRecord st = GenericRecord.create(schema.findType("st").asStructType());
    for (Types.NestedField f : st.struct().fields()) st.setField(f.name(), random.nextInt(3) == 0 ? null : (Object) random.nextInt(9));
    r.setField("st", st);
    return r;
  }

  static void addDefaults() {
    table.updateSchema().addColumn("e", Types.IntegerType.get(), null, Expressions.lit(1))
        .addColumn("s2", Types.StringType.get(), null, Expressions.lit("a \"quoted\" ü"))
        .addColumn("d2", Types.DateType.get(), null, Expressions.lit("1969-12-30").to(Types.DateType.get()))
        .addColumn("l2", Types.LongType.get(), null, Expressions.lit(-(1L << 40)))
        .addColumn("b2", Types.BooleanType.get(), null, Expressions.lit(true))
        .addColumn("f2", Types.DoubleType.get(), null, Expressions.lit(2.5))
        .addColumn("n2", Types.DecimalType.of(20, 3), null, Expressions.lit("-12345.678").to(Types.DecimalType.of(20, 3)))
        .addColumn("st", "k", Types.IntegerType.get(), null, Expressions.lit(5)).commit();
  }

  static OutputFile next(String kind) { return table.io().newOutputFile(table.location() + "/data/" + kind + files++ + ".parquet"); }

  static PartitionKey part(int p) {
    if (table.spec().isUnpartitioned()) return null;
    PartitionKey k = new PartitionKey(table.spec(), schema);
    k.partition(draw(p));
    return k;
  }

  static DataFile rows(int p, int n) throws IOException {
    DataWriter<Record> w = Parquet.writeData(next("rows")).schema(schema).createWriterFunc(GenericParquetWriter::buildWriter)
        .withSpec(table.spec()).withPartition(part(p)).overwrite().build();
    try (w) { for (int i = 0; i < n; i++) w.write(draw(p)); }
    return w.toDataFile();
  }

  static DeleteFile deletes(int p, int... ids) throws IOException {
    Schema some = TypeUtil.select(schema, new HashSet<>(Arrays.stream(ids).boxed().toList()));
    EqualityDeleteWriter<Record> w = Parquet.writeDeletes(next("gone")).rowSchema(some)
        .createWriterFunc(GenericParquetWriter::buildWriter).withSpec(table.spec()).withPartition(part(p))
        .equalityFieldIds(ids).overwrite().buildEqualityWriter();
    try (w) {
      for (int i = 0; i < 4; i++) {
        Record from = draw(p), r = GenericRecord.create(some);
        for (Types.NestedField f : some.columns()) r.setField(f.name(), from.getField(f.name()));
        w.write(r);
      }
    }
    return w.toDeleteFile();
  }

  static DeleteFile positions(DataFile of) throws IOException {
    PositionDeleteWriter<Record> w = Parquet.writeDeletes(next("positions")).createWriterFunc(GenericParquetWriter::buildWriter)
        .withSpec(table.spec()).withPartition(of.partition()).overwrite().buildPositionWriter();
    try (w) { w.write(PositionDelete.<Record>create().set(of.location(), 1, null)); }
    return w.toDeleteFile();
  }

  public static void main(String[] a) throws IOException {
    String at = a[0] + "/" + a[1];
    random = new Random(Long.parseLong(a[2]));
    boolean three = a.length > 4 && a[4].equals("3");
    boolean by = Boolean.parseBoolean(a[3]);
    PartitionSpec spec = by ? PartitionSpec.builderFor(schema).identity("p").build() : PartitionSpec.unpartitioned();
    table = new HadoopTables(new Configuration()).create(schema, spec, Map.of("format-version", three ? "3" : "2"), "file://" + at);
    int[][] ids = {{1}, {2, 3}, {4}, {1, 2}, {3}};
    for (int step = 0; step < 6; step++) {
      if (step == 2 && three) {
        table.updateSchema().addColumn("st", Types.StructType.of(Types.NestedField.optional(1, "a", Types.IntegerType.get()))).commit();
        schema = table.schema();
      }
      if (step == 4) { // older files lack the column, so their rows have nulls in it
        if (three) addDefaults();
        else table.updateSchema().addColumn("e", Types.IntegerType.get()).commit();
        schema = table.schema();
        int e = schema.findField("e").fieldId();
        ids = new int[][] {{e}, {1, e}, {2, e}, {1}};
      }
      RowDelta change = table.newRowDelta();
      int p = random.nextInt(2);
      DataFile f = rows(p, 30);
      change.addRows(f); // deletes of the same snapshot do not apply to it
      if (step > 0) change.addDeletes(deletes(random.nextInt(2), ids[random.nextInt(ids.length)]));
      if (step > 2) change.addDeletes(deletes(p, ids[random.nextInt(ids.length)]));
      if (step % 2 == 1 && !three) change.addDeletes(positions(f));
      change.commit();
    }
    try (PrintWriter out = new PrintWriter(a[0] + "/" + a[1] + ".json")) {
      out.println("{");
      for (Snapshot s : table.snapshots()) out.println("\"" + s.snapshotId() + "\": " + rows(s) + ",");
      out.println("\"now\": " + rows(table.currentSnapshot()) + "}");
    }
  }

  static String rows(Snapshot s) throws IOException {
    List<String> lines = new ArrayList<>();
    try (CloseableIterable<Record> all = IcebergGenerics.read(table).useSnapshot(s.snapshotId()).build()) {
      for (Record r : all) {
        List<String> values = new ArrayList<>();
        for (Types.NestedField f : table.schemas().get(s.schemaId()).columns()) { // the record also has _pos
          Object v = r.getField(f.name());
          values.add("\"" + f.name() + "\":" + json(v));
        }
        lines.add("{" + String.join(",", values) + "}");
      }
    }
    Collections.sort(lines);
    return "[\n" + String.join(",\n", lines) + "]";
  }

  static String json(Object v) {
    if (v instanceof Record r) {
      List<String> values = new ArrayList<>();
      for (Types.NestedField f : r.struct().fields()) values.add("\"" + f.name() + "\":" + json(r.getField(f.name())));
      return "{" + String.join(",", values) + "}";
    }
    if (v instanceof java.math.BigDecimal n) v = n.toPlainString();
    boolean plain = v == null || v instanceof Number || v instanceof Boolean;
    return plain ? "" + v : "\"" + ("" + v).replace("\"", "\\\"") + "\"";
  }
}
