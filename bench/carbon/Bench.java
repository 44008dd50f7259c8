package bench;

import java.io.File;
import java.math.BigDecimal;
import java.util.*;
import org.apache.carbondata.core.constants.CarbonCommonConstants;
import org.apache.carbondata.core.metadata.datatype.*;
import org.apache.carbondata.core.scan.expression.*;
import org.apache.carbondata.core.scan.expression.conditional.EqualToExpression;
import org.apache.carbondata.core.util.CarbonProperties;
import org.apache.carbondata.sdk.file.*;

/**
 * CarbonData's own reader: Bench write DIR makes the table; Bench read DIR RUNS prints "vector|row|vector8|row8|point SECONDS WALL CHECKSUM" — processor time and
 * wall time, each the best of RUNS, after a first run that does not count. Its writer: Bench load DIR RUNS prints "load|load-unsorted SECONDS WALL BYTES" of writing
 * rows that are texts in memory, and leaves the last of each in DIR.
 */
public final class Bench {
  static final int N = 1 << 20;
  static final int KEY = 777_777;

  static long mix(long x) {
    x += 0x9E3779B97F4A7C15L;
    x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L;
    x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL;
    return x ^ (x >>> 31);
  }

  /** Processor time of the whole process: other work on the machine does not count. */
  static long cpu() {
    return ((com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }

  static CarbonWriter writer(String dir, String[] sort) throws Exception {
    Field[] fields = {new Field("id", DataTypes.INT), new Field("low", DataTypes.INT), new Field("big", DataTypes.LONG), new Field("at", DataTypes.TIMESTAMP),
        new Field("day", DataTypes.DATE), new Field("ratio", DataTypes.DOUBLE), new Field("word", DataTypes.STRING), new Field("name", DataTypes.STRING),
        new Field("price", DataTypes.createDecimalType(12, 2)), new Field("flag", DataTypes.BOOLEAN)};
    return CarbonWriter.builder().outputPath(dir).sortBy(sort).withBlockletSize(16).withBlockSize(64).withTableProperty("local_dictionary_enable", "true")
        .withCsvInput(new Schema(fields)).writtenBy("bench").build();
  }

  static String[] row(int i) {
    String[] row = new String[10]; // the writer keeps it
    long h = mix(i);
    row[0] = Integer.toString(i);
    row[1] = Integer.toString((int) (h & 1023));
    row[2] = Long.toString(h >> 20);
    row[3] = String.format("2024-%02d-%02d %02d:%02d:%02d.000", 1 + i % 12, 1 + i % 28, i % 24, i % 60, (i >> 6) % 60);
    row[4] = String.format("20%02d-%02d-%02d", 10 + i % 15, 1 + i % 12, 1 + (i >> 4) % 28);
    row[5] = Double.toString((double) (h >> 40) / 8);
    row[6] = "word" + (h & 1023);
    row[7] = "name " + Long.toHexString(h);
    row[8] = BigDecimal.valueOf((h >>> 34), 2).toPlainString();
    row[9] = Boolean.toString((h & 4) == 0);
    return row;
  }

  static void write(String dir) throws Exception {
    CarbonWriter w = writer(dir, new String[] {"id"});
    for (int i = 0; i < N; i++) w.write(row(i));
    w.close();
  }

  /** Files in a directory, in bytes. */
  static long size(File dir) {
    long n = 0;
    for (File f : dir.listFiles()) n += f.isDirectory() ? size(f) : f.length();
    return n;
  }

  static void remove(File f) {
    File[] in = f.listFiles();
    if (in != null) for (File x : in) remove(x);
    f.delete();
  }

  static void load(String dir, int runs, java.io.PrintStream out) throws Exception {
    String[][] rows = new String[N][];
    for (int i = 0; i < N; i++) rows[i] = row((int) (i * 777_777L % N)); // in no order: there is something to sort
    for (String what : new String[] {"load", "load-unsorted"}) {
      long least = Long.MAX_VALUE, wall = Long.MAX_VALUE;
      String to = dir + "/" + what;
      for (int k = 0; k <= runs; k++) {
        remove(new File(to));
        System.gc();
        long c = cpu(), t = System.nanoTime();
        CarbonWriter w = writer(to, what.equals("load") ? new String[] {"id"} : new String[0]);
        for (String[] r : rows) w.write(r);
        w.close();
        c = cpu() - c;
        t = System.nanoTime() - t;
        if (k > 0) {
          least = Math.min(least, c);
          wall = Math.min(wall, t);
        }
      }
      out.printf("%s %.4f %.4f %d%n", what, least / 1e9, wall / 1e9, size(new File(to)));
      out.flush();
    }
  }

  /** What each value adds to the sum: bench/carbon/main.go has the same. */
  static long value(Object o) {
    if (o == null) return 1;
    if (o instanceof Integer) return (Integer) o;
    if (o instanceof Long) return (Long) o;
    if (o instanceof Double) return Double.doubleToLongBits((Double) o);
    if (o instanceof Boolean) return (Boolean) o ? 1 : 0;
    if (o instanceof BigDecimal) return ((BigDecimal) o).setScale(2).unscaledValue().longValue();
    return o.hashCode(); // a text: s[0]·31^(n-1) + …
  }

  static final String[] ALL = {"id", "low", "big", "at", "day", "ratio", "word", "name", "price", "flag"};
  /** Its reader makes texts of dates and timestamps, which takes time: so without them, too. */
  static final String[] SOME = {"id", "low", "big", "ratio", "word", "name", "price", "flag"};

  static long[] scan(String dir, boolean row, boolean point, String[] columns) throws Exception {
    CarbonReaderBuilder b = CarbonReader.builder(dir, "bench" + System.nanoTime()).projection(columns);
    if (row) b.withRowRecordReader();
    if (point) b.filter(new EqualToExpression(new ColumnExpression("id", DataTypes.INT), new LiteralExpression(KEY, DataTypes.INT)));
    CarbonReader<Object> r = b.build();
    long n = 0, sum = 0;
    while (r.hasNext()) {
      for (Object o : (Object[]) r.readNextRow()) sum += value(o);
      n++;
    }
    r.close();
    return new long[] {n, sum};
  }

  public static void main(String[] a) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    CarbonProperties.getInstance().addProperty(CarbonCommonConstants.CARBON_TIMESTAMP_FORMAT, "yyyy-MM-dd HH:mm:ss.SSS");
    java.io.PrintStream out = System.out;
    System.setOut(System.err);
    String dir = new File(a[1]).getCanonicalPath();
    if (a[0].equals("write")) {
      write(dir);
      Runtime.getRuntime().halt(0);
    }
    int runs = Integer.parseInt(a[2]);
    if (a[0].equals("load")) {
      load(dir, runs, out);
      Runtime.getRuntime().halt(0);
    }
    for (String what : new String[] {"vector", "row", "vector8", "row8", "point"}) {
      boolean point = what.equals("point");
      long least = Long.MAX_VALUE, wall = Long.MAX_VALUE;
      long[] got = null;
      for (int i = 0; i <= runs; i++) {
        long c = cpu(), t = System.nanoTime();
        got = scan(dir, what.startsWith("row"), point, what.endsWith("8") ? SOME : ALL);
        c = cpu() - c;
        t = System.nanoTime() - t;
        if (i > 0) {
          least = Math.min(least, c);
          wall = Math.min(wall, t);
        }
      }
      if (got[0] != (point ? 1 : N)) throw new IllegalStateException(what + ": " + got[0] + " rows");
      out.printf("%s %.4f %.4f %016x%n", what, least / 1e9, wall / 1e9, got[1]);
      out.flush();
    }
    Runtime.getRuntime().halt(0);
  }
}
