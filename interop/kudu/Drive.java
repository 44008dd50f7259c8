// Runs the Java client for the Go tests: one command a line on standard input, one answer a line ("ok …" or "err …").
// Fields are separated by tabs. A cell is written as N (null), true/false, an integer (also days, microseconds, an unscaled
// decimal), the hex of IEEE bits (float, double), x and hex (string, varchar, binary), or - (update: column is not set).
//   create TABLE SPECFILE            a column a line: name type key nullable encoding compression blocksize precision scale length
//   write  TABLE insert|upsert|update|delete ROWFILE OUTFILE     OUTFILE: one status a row
//   scan   TABLE OUTFILE [HYBRIDTIME]                            rows in the order of the key
//   ranges TABLE ROWFILE OUTFILE     a row: lower key cells, then upper key cells; out: the rows of [lower, upper), then a line "."
//   drop TABLE | time | quit | the commands of Dir
import java.io.*;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.kudu.*;
import org.apache.kudu.client.*;
import org.apache.kudu.util.DateUtil;

public class Drive {
  static KuduClient client;

  static byte[] unhex(String s) {
    byte[] b = new byte[s.length() / 2];
    for (int i = 0; i < b.length; i++) b[i] = (byte) Integer.parseInt(s.substring(2 * i, 2 * i + 2), 16);
    return b;
  }

  static void put(PartialRow p, int i, ColumnSchema c, String s) {
    if (s.equals("-")) return;
    if (s.equals("N")) { p.setNull(i); return; }
    switch (c.getType()) {
      case BOOL: p.addBoolean(i, s.equals("true")); break;
      case INT8: p.addByte(i, Byte.parseByte(s)); break;
      case INT16: p.addShort(i, Short.parseShort(s)); break;
      case INT32: p.addInt(i, Integer.parseInt(s)); break;
      case INT64: case UNIXTIME_MICROS: p.addLong(i, Long.parseLong(s)); break;
      case DATE: p.addDate(i, DateUtil.epochDaysToSqlDate(Integer.parseInt(s))); break;
      case FLOAT: p.addFloat(i, Float.intBitsToFloat(Integer.parseUnsignedInt(s, 16))); break;
      case DOUBLE: p.addDouble(i, Double.longBitsToDouble(Long.parseUnsignedLong(s, 16))); break;
      case DECIMAL: p.addDecimal(i, new BigDecimal(new BigInteger(s), c.getTypeAttributes().getScale())); break;
      case STRING: p.addStringUtf8(i, unhex(s.substring(1))); break;
      case VARCHAR: p.addVarchar(i, new String(unhex(s.substring(1)), StandardCharsets.UTF_8)); break;
      case BINARY: p.addBinary(i, unhex(s.substring(1))); break;
      default: throw new RuntimeException("type " + c.getType());
    }
  }

  static final char[] HEX = "0123456789abcdef".toCharArray();

  static void hex(StringBuilder b, byte[] v) {
    b.append('x');
    for (byte x : v) b.append(HEX[(x >> 4) & 15]).append(HEX[x & 15]);
  }

  static void get(StringBuilder b, RowResult r, int i, ColumnSchema c) {
    if (r.isNull(i)) { b.append('N'); return; }
    switch (c.getType()) {
      case BOOL: b.append(r.getBoolean(i)); break;
      case INT8: b.append(r.getByte(i)); break;
      case INT16: b.append(r.getShort(i)); break;
      case INT32: b.append(r.getInt(i)); break;
      case INT64: case UNIXTIME_MICROS: b.append(r.getLong(i)); break;
      case DATE: b.append(DateUtil.sqlDateToEpochDays(r.getDate(i))); break;
      case FLOAT: b.append(String.format("%08x", Float.floatToRawIntBits(r.getFloat(i)))); break;
      case DOUBLE: b.append(String.format("%016x", Double.doubleToRawLongBits(r.getDouble(i)))); break;
      case DECIMAL: b.append(r.getDecimal(i).unscaledValue()); break;
      case STRING: hex(b, r.getString(i).getBytes(StandardCharsets.UTF_8)); break;
      case VARCHAR: hex(b, r.getVarchar(i).getBytes(StandardCharsets.UTF_8)); break;
      case BINARY: hex(b, r.getBinaryCopy(i)); break;
      default: throw new RuntimeException("type " + c.getType());
    }
  }

  static String create(String table, String spec) throws Exception {
    List<ColumnSchema> cols = new ArrayList<>();
    List<String> keys = new ArrayList<>();
    for (String line : Files.readAllLines(Paths.get(spec))) {
      String[] f = line.split("\t");
      Type t = Type.valueOf(f[1]);
      ColumnSchema.ColumnSchemaBuilder b = new ColumnSchema.ColumnSchemaBuilder(f[0], t).key(f[2].equals("true")).nullable(f[3].equals("true"));
      if (!f[4].isEmpty()) b.encoding(ColumnSchema.Encoding.valueOf(f[4]));
      if (!f[5].isEmpty()) b.compressionAlgorithm(ColumnSchema.CompressionAlgorithm.valueOf(f[5]));
      if (Integer.parseInt(f[6]) > 0) b.desiredBlockSize(Integer.parseInt(f[6]));
      if (t == Type.DECIMAL) b.typeAttributes(new ColumnTypeAttributes.ColumnTypeAttributesBuilder().precision(Integer.parseInt(f[7])).scale(Integer.parseInt(f[8])).build());
      if (t == Type.VARCHAR) b.typeAttributes(new ColumnTypeAttributes.ColumnTypeAttributesBuilder().length(Integer.parseInt(f[9])).build());
      cols.add(b.build());
      if (f[2].equals("true")) keys.add(f[0]);
    }
    client.createTable(table, new Schema(cols), new CreateTableOptions().setRangePartitionColumns(keys).setNumReplicas(1));
    return "ok";
  }

  static String status(OperationResponse r) {
    if (!r.hasRowError()) return "ok";
    org.apache.kudu.client.Status s = r.getRowError().getErrorStatus();
    return s.isAlreadyPresent() ? "AlreadyPresent" : s.isNotFound() ? "NotFound" : s.toString().replaceAll("\\s+", " ");
  }

  static String write(String table, String kind, String in, String out) throws Exception {
    KuduTable t = client.openTable(table);
    Schema sc = t.getSchema();
    KuduSession ss = client.newSession();
    ss.setFlushMode(SessionConfiguration.FlushMode.MANUAL_FLUSH);
    ss.setMutationBufferSpace(1000);
    int rows = 0, good = 0, pending = 0;
    try (BufferedReader r = Files.newBufferedReader(Paths.get(in)); PrintWriter w = new PrintWriter(out, "UTF-8")) {
      String line;
      while (true) {
        line = r.readLine();
        if (pending == 500 || (line == null && pending > 0)) {
          for (OperationResponse x : ss.flush()) { String s = status(x); if (s.equals("ok")) good++; w.print(s + "\n"); }
          pending = 0;
        }
        if (line == null) break;
        Operation op = kind.equals("insert") ? t.newInsert() : kind.equals("upsert") ? t.newUpsert() : kind.equals("update") ? t.newUpdate() : t.newDelete();
        String[] f = line.split("\t", -1);
        for (int i = 0; i < f.length; i++) put(op.getRow(), i, sc.getColumnByIndex(i), f[i]);
        ss.apply(op);
        rows++; pending++;
      }
    }
    ss.close();
    return "ok " + rows + " " + good;
  }

  static int drain(KuduScanner s, PrintWriter w) throws Exception {
    int n = 0;
    Schema sc = s.getProjectionSchema();
    StringBuilder b = new StringBuilder();
    while (s.hasMoreRows()) {
      for (RowResult r : s.nextRows()) {
        b.setLength(0);
        for (int i = 0; i < sc.getColumnCount(); i++) { if (i > 0) b.append('\t'); get(b, r, i, sc.getColumnByIndex(i)); }
        w.print(b.append('\n'));
        n++;
      }
    }
    s.close();
    return n;
  }

  static String scan(String table, String out, String at) throws Exception {
    KuduScanner.KuduScannerBuilder b = client.newScannerBuilder(client.openTable(table)).setFaultTolerant(true);
    if (at != null) b.readMode(AsyncKuduScanner.ReadMode.READ_AT_SNAPSHOT).snapshotTimestampRaw(Long.parseLong(at));
    try (PrintWriter w = new PrintWriter(out, "UTF-8")) { return "ok " + drain(b.build(), w); }
  }

  static String ranges(String table, String in, String out) throws Exception {
    KuduTable t = client.openTable(table);
    Schema sc = t.getSchema();
    int nk = sc.getPrimaryKeyColumnCount(), n = 0;
    try (PrintWriter w = new PrintWriter(out, "UTF-8")) {
      for (String line : Files.readAllLines(Paths.get(in))) {
        String[] f = line.split("\t", -1);
        PartialRow lo = sc.newPartialRow(), hi = sc.newPartialRow();
        for (int i = 0; i < nk; i++) { put(lo, i, sc.getColumnByIndex(i), f[i]); put(hi, i, sc.getColumnByIndex(i), f[nk + i]); }
        n += drain(client.newScannerBuilder(t).setFaultTolerant(true).lowerBound(lo).exclusiveUpperBound(hi).build(), w);
        w.print(".\n");
      }
    }
    return "ok " + n;
  }

  static String run(String[] a) throws Exception {
    switch (a[0]) {
      case "create": return create(a[1], a[2]);
      case "write": return write(a[1], a[2], a[3], a[4]);
      case "scan": return scan(a[1], a[2], a.length > 3 ? a[3] : null);
      case "ranges": return ranges(a[1], a[2], a[3]);
      case "drop": client.deleteTable(a[1]); return "ok";
      case "time": return "ok " + client.getLastPropagatedTimestamp();
      default: return Dir.run(a);
    }
  }

  public static void main(String[] args) throws Exception {
    client = new KuduClient.KuduClientBuilder(args[0]).defaultOperationTimeoutMs(60000).defaultAdminOperationTimeoutMs(60000).build();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null && !line.equals("quit"); ) {
      String answer;
      try { answer = run(line.split("\t", -1)); } catch (Throwable e) { answer = "err " + e.toString().replaceAll("\\s+", " "); }
      System.out.println(answer);
      System.out.flush();
    }
    client.close();
  }
}
