package bench;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.trevni.*;
import org.apache.trevni.avro.*;

/**
 * Writes and scans 1 M rows of 10 columns with Avro's Trevni. Prints "write|scan CASE CPU WALL": seconds of processor time and on the clock, the best of
 * several each; and "sum CASE NULLS SUM" of the values that were read, so that both sides are seen to read the same.
 * columns: ColumnFileWriter and ColumnFileReader, the fastest that Avro has, nothing is null. records: AvroColumnWriter and AvroColumnReader, and a tenth is null.
 */
public final class Bench {
  static final int N = 1 << 20;
  static long mix(long x) { x += 0x9E3779B97F4A7C15L; x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L; x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL; return x ^ (x >>> 31); }

  static Object[] row(int i) {
    long h = mix(i);
    return new Object[] {i / 3, (int) h, h >> 20, 1700000000000000L + 1000L * i, (float) (h & 0xffff) / 8, (double) (h >> 30) / 7, "word" + (h & 1023), "s" + i,
        ByteBuffer.wrap(Long.toHexString(h).getBytes(StandardCharsets.US_ASCII)), (h & 4) == 0};
  }

  static long nulls, sum;

  /** Numbers by their bits, strings by their bytes. */
  static void add(Object v) {
    if (v == null) { nulls++; return; }
    if (v instanceof Integer) sum += (Integer) v;
    else if (v instanceof Long) sum += (Long) v;
    else if (v instanceof Float) sum += Float.floatToRawIntBits((Float) v);
    else if (v instanceof Double) sum += Double.doubleToRawLongBits((Double) v);
    else if (v instanceof Boolean) sum += (Boolean) v ? 1 : 0;
    else {
      byte[] b = v instanceof ByteBuffer ? ((ByteBuffer) v).array() : v.toString().getBytes(StandardCharsets.UTF_8);
      long x = b.length;
      for (byte c : b) x = x * 31 + c;
      sum += x;
    }
  }

  interface Work { void run() throws Exception; }

  /** Processor time is that of the whole process: other work on the machine does not count, the collector's does. */
  static void best(String what, int runs, Work w) throws Exception {
    var os = (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    double cpu = 1e9, wall = 1e9;
    for (int r = 0; r < runs; r++) {
      long c = os.getProcessCpuTime(), t = System.nanoTime();
      w.run();
      cpu = Math.min(cpu, (os.getProcessCpuTime() - c) / 1e9);
      wall = Math.min(wall, (System.nanoTime() - t) / 1e9);
    }
    System.out.printf("%s %.4f %.4f%n", what, cpu, wall);
  }

  static int seen;

  static void columns(File f, boolean add) throws Exception {
    seen = 0;
    try (ColumnFileReader in = new ColumnFileReader(f)) {
      for (int c = 0; c < 10; c++) {
        ColumnValues<? extends Comparable> v = in.getValues(c);
        while (v.hasNext()) {
          Object x = v.next();
          if (x != null) seen++;
          if (add) add(x);
        }
      }
    }
    if (seen != 10 * N) throw new IllegalStateException("saw " + seen);
  }

  static void records(File f, boolean add) throws Exception {
    seen = 0;
    try (AvroColumnReader<GenericRecord> in = new AvroColumnReader<>(new AvroColumnReader.Params(f))) {
      for (GenericRecord r : in) {
        seen++;
        for (int c = 0; add && c < 10; c++) add(r.get(c));
      }
    }
    if (seen != N) throw new IllegalStateException("saw " + seen);
  }

  /** Reads what stoa wrote, and prints the sums of that. */
  static void check(String dir) throws Exception {
    for (String name : new String[] {"columns-null", "columns-snappy", "columns-deflate", "records-null", "records-snappy"}) {
      File f = new File(dir, "stoa-" + name + ".trv");
      nulls = sum = 0;
      if (name.startsWith("columns")) columns(f, true); else records(f, true);
      System.out.printf("sum %s %d %d%n", name, nulls, sum);
    }
  }

  public static void main(String[] a) throws Exception {
    String dir = a[0];
    if (a[1].equals("check")) {
      check(dir);
      return;
    }
    int runs = Integer.parseInt(a[1]);
    ValueType[] types = {ValueType.INT, ValueType.INT, ValueType.LONG, ValueType.LONG, ValueType.FLOAT, ValueType.DOUBLE, ValueType.STRING, ValueType.STRING, ValueType.BYTES, ValueType.BOOLEAN};
    List<Object[]> rows = new ArrayList<>(N);
    for (int i = 0; i < N; i++) rows.add(row(i));
    for (String spec : new String[] {"null null", "snappy crc32", "deflate crc32"}) {
      String codec = spec.split(" ")[0];
      String name = "columns-" + codec;
      File f = new File(dir, "java-" + name + ".trv");
      ColumnFileMetaData m = new ColumnFileMetaData();
      m.setCodec(codec).setChecksum(spec.split(" ")[1]);
      best("write " + name, runs, () -> {
        ColumnMetaData[] cs = new ColumnMetaData[types.length];
        for (int i = 0; i < cs.length; i++) cs[i] = new ColumnMetaData("c" + i, types[i]);
        ColumnFileWriter w = new ColumnFileWriter(m, cs);
        for (Object[] row : rows) w.writeRow(row);
        w.writeTo(f);
      });
      best("scan " + name, runs, () -> columns(f, false));
      nulls = sum = 0;
      columns(f, true);
      System.out.printf("sum %s %d %d%n", name, nulls, sum);
    }
    StringBuilder json = new StringBuilder("{\"type\":\"record\",\"name\":\"R\",\"fields\":[");
    for (int i = 0; i < types.length; i++)
      json.append(i == 0 ? "" : ",").append("{\"name\":\"c" + i + "\",\"type\":[\"null\",\"" + types[i].toString().toLowerCase() + "\"]}");
    Schema schema = new Schema.Parser().parse(json + "]}");
    List<GenericRecord> records = new ArrayList<>(N);
    for (int i = 0; i < N; i++) {
      GenericRecord r = new GenericData.Record(schema);
      Object[] row = rows.set(i, null);
      for (int c = 0; c < 10; c++) if ((mix(i) >>> 8) % 10 != c) r.put(c, row[c]);
      records.add(r);
    }
    for (String spec : new String[] {"null null", "snappy crc32"}) {
      String name = "records-" + spec.split(" ")[0];
      File f = new File(dir, "java-" + name + ".trv");
      best("write " + name, runs, () -> {
        ColumnFileMetaData m = new ColumnFileMetaData();
        m.setCodec(spec.split(" ")[0]).setChecksum(spec.split(" ")[1]);
        AvroColumnWriter<GenericRecord> w = new AvroColumnWriter<>(schema, m);
        for (GenericRecord r : records) w.write(r);
        w.writeTo(f);
      });
      best("scan " + name, runs, () -> records(f, false));
      nulls = sum = 0;
      records(f, true);
      System.out.printf("sum %s %d %d%n", name, nulls, sum);
    }
  }
}
