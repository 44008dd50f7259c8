package bench;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.util.LinkedHashMap;
import java.util.Map;

/** The ten columns of columns/columns.go, their checksums (as sum.go has them), and the measuring of one thing. */
final class Rows {
  static final String[] NAMES = {"key", "int32", "float64", "low", "high", "time", "bool", "nullable", "decimal", "date"};

  static long mix(long x) {
    x += 0x9E3779B97F4A7C15L;
    x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L;
    x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL;
    return x ^ (x >>> 31);
  }

  static int rem(long h, int n) { return (int) Long.remainderUnsigned(h, n); }

  static String hex16(long x) {
    String s = Long.toHexString(x);
    return "0".repeat(16 - s.length()) + s;
  }

  /** Row r: Long, Integer, Double, String, String, Long (microseconds), Boolean, Integer or null, Long (unscaled, two decimals), Integer (days). */
  static Object[] row(int r) {
    long h = mix(r);
    return new Object[] {r * 3L + rem(h, 3), rem(h, 100_000), (double) (h >>> 20) / 1024, "city-" + rem(h >>> 8, 200), "user-" + hex16(mix(h) >>> rem(h, 32)),
        1_700_000_000_000_000L + r * 250_000L + rem(h, 250_000), (h >>> 33) % 4 == 0, (h >>> 40) % 5 == 0 ? null : (Integer) (int) (h >>> 44),
        (long) rem(h, 100_000_000), 18000 + r / 2000 + rem(h, 7)};
  }

  /** Sum is that of one column: rows, nulls, and the values modulo 2⁶⁴. */
  static final class Sum {
    long rows, nulls, total;

    void add(Object v) {
      rows++;
      if (v == null) nulls++; else total += value(v);
    }

    private static long value(Object v) {
      if (v instanceof Long) return (Long) v;
      if (v instanceof Integer) return (Integer) v;
      if (v instanceof Double) return Double.doubleToRawLongBits((Double) v);
      if (v instanceof Boolean) return (Boolean) v ? 1 : 0;
      if (v instanceof BigDecimal) return ((BigDecimal) v).setScale(2).unscaledValue().longValue();
      if (v instanceof LocalDate) return ((LocalDate) v).toEpochDay();
      if (v instanceof ByteBuffer) { // a decimal as Avro has it: two's complement, big-endian
        ByteBuffer b = (ByteBuffer) v;
        long x = b.get(b.position()) < 0 ? -1 : 0;
        for (int i = b.position(); i < b.limit(); i++) x = x << 8 | b.get(i) & 0xff;
        return x;
      }
      byte[] b = v.toString().getBytes(StandardCharsets.UTF_8);
      long x = b.length;
      for (byte c : b) x += c & 0xff;
      return x;
    }
  }

  static Sum[] sums() {
    Sum[] out = new Sum[NAMES.length];
    for (int c = 0; c < out.length; c++) out[c] = new Sum();
    return out;
  }

  interface Work { void run() throws Exception; }

  private static final Map<String, Work> runs = new LinkedHashMap<>();
  private static final StringBuilder told = new StringBuilder();

  /** Processor time of the whole process, in seconds. */
  static double seconds(Work w) throws Exception {
    var os = (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    System.gc();
    long c = os.getProcessCpuTime();
    w.run();
    return (os.getProcessCpuTime() - c) / 1e9;
  }

  interface Sums { Sum[] get() throws Exception; }

  /** Offers a measurement, with the checksums of what is read or was written; runs it once, which does not count. */
  static void offer(String name, Work w, Sums read) throws Exception {
    if (w != null) w.run();
    runs.put(name, w);
    Sum[] sums = read.get();
    StringBuilder s = new StringBuilder();
    for (int c = 0; c < sums.length; c++)
      s.append(String.format("%s\"%s\":{\"Rows\":%d,\"Nulls\":%d,\"Total\":%s}", c == 0 ? "" : ",", NAMES[c], sums[c].rows, sums[c].nulls, Long.toUnsignedString(sums[c].total)));
    told.append(told.length() == 0 ? "" : ",").append(String.format("\"%s\":{\"Sums\":{%s}}", name, s));
  }

  /** Prints what is offered, and then the seconds of each run whose name comes on standard input, a JSON string a line. */
  static void serve(java.io.PrintStream to) throws Exception {
    to.println("{" + told + "}");
    to.flush();
    var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String l = in.readLine(); l != null; l = in.readLine()) {
      to.println(seconds(runs.get(l.substring(1, l.length() - 1))));
      to.flush();
    }
  }
}
