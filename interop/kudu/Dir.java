// Drive's commands for the tests of server directories: tables with all features of a schema, schema changes, and
// rows of all kinds of operations. Fields and cells are as in Drive; "-" is a column that is not set, or an open bound.
//   make    TABLE SPECFILE     a line: col NAME TYPE KEY NULLABLE ENCODING COMPRESSION BLOCKSIZE PRECISION SCALE LENGTH DEFAULT IMMUTABLE
//                              KEY is true, false or nonunique; or: hash BUCKETS SEED COLUMN…; range COLUMN…; bound LOW… HIGH… [/ BUCKETS SEED COLUMN…]
//                              (one word a range column); config KEY VALUE; replicas N
//   alter   TABLE SPECFILE     add (as col), drop NAME, rename OLD NEW, default NAME CELL, nodefault NAME, layout NAME ENCODING COMPRESSION BLOCKSIZE,
//                              bound, unbound, name NEW, config; all in one change
//   apply   TABLE ROWFILE OUTFILE BATCH    a row: kind of operation, cells; OUTFILE: one status a row; BATCH rows are sent at once
//   columns TABLE OUTFILE      a column a line: name, type, key, nullable, precision, scale, length
//   tablets TABLE OUTFILE      a tablet a line in the order of partitions: id, hash buckets, range
//   tables  OUTFILE            names and ids
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.kudu.*;
import org.apache.kudu.client.*;

class Dir {
  /** fill sets the columns of a row from words, in the order of the schema. */
  static void fill(PartialRow p, Schema sc, String[] words, int from) {
    for (int i = from; i < words.length; i++) Drive.put(p, i - from, sc.getColumnByIndex(i - from), words[i]);
  }

  static Object value(Schema sc, int i, String cell) {
    PartialRow p = sc.newPartialRow();
    Drive.put(p, i, sc.getColumnByIndex(i), cell);
    return p.getObject(i);
  }

  static ColumnSchema column(String[] f) {
    Type t = Type.valueOf(f[2]);
    ColumnSchema.ColumnSchemaBuilder b = new ColumnSchema.ColumnSchemaBuilder(f[1], t).nullable(f[4].equals("true"));
    if (f[3].equals("nonunique")) b.nonUniqueKey(true);
    else b.key(f[3].equals("true"));
    if (!f[5].isEmpty()) b.encoding(ColumnSchema.Encoding.valueOf(f[5]));
    if (!f[6].isEmpty()) b.compressionAlgorithm(ColumnSchema.CompressionAlgorithm.valueOf(f[6]));
    if (Integer.parseInt(f[7]) > 0) b.desiredBlockSize(Integer.parseInt(f[7]));
    if (t == Type.DECIMAL) b.typeAttributes(new ColumnTypeAttributes.ColumnTypeAttributesBuilder().precision(Integer.parseInt(f[8])).scale(Integer.parseInt(f[9])).build());
    if (t == Type.VARCHAR) b.typeAttributes(new ColumnTypeAttributes.ColumnTypeAttributesBuilder().length(Integer.parseInt(f[10])).build());
    if (f[12].equals("true")) b.immutable(true);
    if (!f[11].isEmpty()) b.defaultValue(value(new Schema(List.of(new ColumnSchema.ColumnSchemaBuilder("k", Type.INT8).key(true).build(), b.build())), 1, f[11]));
    return b.build();
  }

  static List<String> list(String[] f, int from) {
    return Arrays.asList(f).subList(from, f.length);
  }

  /** A range: fields for its lower and upper bound, and optionally its own hash partitions. */
  static class Bound {
    PartialRow low, high;
    RangePartitionWithCustomHashSchema own;

    Bound(Schema sc, List<String> range, String[] f) {
      int n = range.size();
      low = sc.newPartialRow();
      high = sc.newPartialRow();
      for (int i = 0; i < n; i++) {
        int c = sc.getColumnIndex(range.get(i));
        Drive.put(low, c, sc.getColumnByIndex(c), f[1 + i]);
        Drive.put(high, c, sc.getColumnByIndex(c), f[1 + n + i]);
      }
      if (f.length > 1 + 2 * n) {
        own = new RangePartitionWithCustomHashSchema(low, high, RangePartitionBound.INCLUSIVE_BOUND, RangePartitionBound.EXCLUSIVE_BOUND);
        own.addHashPartitions(list(f, 4 + 2 * n), Integer.parseInt(f[2 + 2 * n]), Integer.parseInt(f[3 + 2 * n]));
      }
    }
  }

  static List<String[]> spec(String file) throws IOException {
    List<String[]> out = new ArrayList<>();
    for (String l : Files.readAllLines(Paths.get(file))) out.add(l.split("\t", -1));
    return out;
  }

  static String make(String table, String file) throws Exception {
    List<ColumnSchema> cols = new ArrayList<>();
    for (String[] f : spec(file)) if (f[0].equals("col")) cols.add(column(f));
    Schema sc = new Schema(cols);
    CreateTableOptions o = new CreateTableOptions().setNumReplicas(1);
    List<String> range = new ArrayList<>();
    o.setRangePartitionColumns(range);
    for (String[] f : spec(file)) {
      switch (f[0]) {
        case "col": break;
        case "hash": o.addHashPartitions(list(f, 3), Integer.parseInt(f[1]), Integer.parseInt(f[2])); break;
        case "range": range = list(f, 1); o.setRangePartitionColumns(range); break;
        case "config": o.setExtraConfigs(Map.of(f[1], f[2])); break;
        case "replicas": o.setNumReplicas(Integer.parseInt(f[1])); break;
        case "bound":
          Bound b = new Bound(sc, range, f);
          if (b.own != null) o.addRangePartition(b.own);
          else o.addRangePartition(b.low, b.high);
          break;
        default: throw new IllegalArgumentException(f[0]);
      }
    }
    Drive.client.createTable(table, sc, o);
    return "ok";
  }

  static String alter(String table, String file) throws Exception {
    Schema sc = Drive.client.openTable(table).getSchema();
    AlterTableOptions o = new AlterTableOptions();
    List<String> range = new ArrayList<>();
    for (String[] f : spec(file)) {
      switch (f[0]) {
        case "add": o.addColumn(column(f)); break;
        case "drop": o.dropColumn(f[1]); break;
        case "rename": o.renameColumn(f[1], f[2]); break;
        case "default": o.changeDefault(f[1], value(sc, sc.getColumnIndex(f[1]), f[2])); break;
        case "nodefault": o.removeDefault(f[1]); break;
        case "layout":
          o.changeEncoding(f[1], ColumnSchema.Encoding.valueOf(f[2]));
          o.changeCompressionAlgorithm(f[1], ColumnSchema.CompressionAlgorithm.valueOf(f[3]));
          o.changeDesiredBlockSize(f[1], Integer.parseInt(f[4]));
          break;
        case "range": range = list(f, 1); break; // of which columns the bounds are
        case "bound": { Bound b = new Bound(sc, range, f); if (b.own != null) o.addRangePartition(b.own); else o.addRangePartition(b.low, b.high); break; }
        case "unbound": { Bound b = new Bound(sc, range, f); o.dropRangePartition(b.low, b.high); break; }
        case "name": o.renameTable(f[1]); break;
        case "config": o.alterExtraConfigs(Map.of(f[1], f[2])); break;
        default: throw new IllegalArgumentException(f[0]);
      }
    }
    Drive.client.alterTable(table, o);
    return "ok";
  }

  static Operation operation(KuduTable t, String kind) {
    switch (kind) {
      case "insert": return t.newInsert();
      case "insert_ignore": return t.newInsertIgnore();
      case "upsert": return t.newUpsert();
      case "upsert_ignore": return t.newUpsertIgnore();
      case "update": return t.newUpdate();
      case "update_ignore": return t.newUpdateIgnore();
      case "delete": return t.newDelete();
      case "delete_ignore": return t.newDeleteIgnore();
      default: throw new IllegalArgumentException(kind);
    }
  }

  static String apply(String table, String in, String out, int batch) throws Exception {
    KuduTable t = Drive.client.openTable(table);
    KuduSession ss = Drive.client.newSession();
    ss.setFlushMode(SessionConfiguration.FlushMode.MANUAL_FLUSH);
    ss.setMutationBufferSpace(batch + 1);
    int rows = 0, good = 0, pending = 0;
    try (BufferedReader r = Files.newBufferedReader(Paths.get(in)); PrintWriter w = new PrintWriter(out, "UTF-8")) {
      for (String line; ; ) {
        line = r.readLine();
        if (pending > 0 && (pending == batch || line == null)) {
          for (OperationResponse x : ss.flush()) { String s = Drive.status(x); if (s.equals("ok")) good++; w.print(s + "\n"); }
          pending = 0;
        }
        if (line == null) break;
        String[] f = line.split("\t", -1);
        Operation op = operation(t, f[0]);
        fill(op.getRow(), t.getSchema(), f, 1);
        ss.apply(op);
        rows++;
        pending++;
      }
    }
    ss.close();
    return "ok " + rows + " " + good;
  }

  static String columns(String table, String out) throws Exception {
    Schema sc = Drive.client.openTable(table).getSchema();
    try (PrintWriter w = new PrintWriter(out, "UTF-8")) {
      for (ColumnSchema c : sc.getColumns()) {
        ColumnTypeAttributes a = c.getTypeAttributes();
        int prec = a == null || c.getType() != Type.DECIMAL ? 0 : a.getPrecision(), scale = a == null || c.getType() != Type.DECIMAL ? 0 : a.getScale();
        w.print(c.getName() + "\t" + c.getType().name() + "\t" + c.isKey() + "\t" + c.isNullable() + "\t" + prec + "\t" + scale + "\t" + (a == null || c.getType() != Type.VARCHAR ? 0 : a.getLength()) + "\n");
      }
    }
    return "ok";
  }

  static String tablets(String table, String out) throws Exception {
    List<LocatedTablet> l = Drive.client.openTable(table).getTabletsLocations(60000);
    l.sort(Comparator.comparing(LocatedTablet::getPartition));
    try (PrintWriter w = new PrintWriter(out, "UTF-8")) {
      for (LocatedTablet t : l) {
        StringBuilder b = new StringBuilder(new String(t.getTabletId(), StandardCharsets.UTF_8)).append('\t');
        for (Integer h : t.getPartition().getHashBuckets()) b.append(h).append(' ');
        b.append('\t');
        Drive.hex(b, t.getPartition().getRangeKeyStart());
        b.append('\t');
        Drive.hex(b, t.getPartition().getRangeKeyEnd());
        w.print(b.append('\n'));
      }
    }
    return "ok " + l.size();
  }

  static String tables(String out) throws Exception {
    try (PrintWriter w = new PrintWriter(out, "UTF-8")) {
      for (ListTablesResponse.TableInfo i : Drive.client.getTablesList().getTableInfosList()) w.print(i.getTableName() + "\t" + i.getTableId() + "\n");
    }
    return "ok";
  }

  static String run(String[] a) throws Exception {
    switch (a[0]) {
      case "make": return make(a[1], a[2]);
      case "alter": return alter(a[1], a[2]);
      case "apply": return apply(a[1], a[2], a[3], Integer.parseInt(a[4]));
      case "columns": return columns(a[1], a[2]);
      case "tablets": return tablets(a[1], a[2]);
      case "tables": return tables(a[1]);
      default: return "err unknown command " + a[0];
    }
  }
}
