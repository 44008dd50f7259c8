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

  private static final Map<String, String> out = new LinkedHashMap<>();

  /** Processor time of the whole process, in seconds: the best of five after one that does not count. */
  static double best(Work w) throws Exception {
    var os = (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    double least = 1e9;
    for (int i = 0; i <= 5; i++) {
      System.gc();
      long c = os.getProcessCpuTime();
      w.run();
      double took = (os.getProcessCpuTime() - c) / 1e9;
      if (i > 0) least = Math.min(least, took);
    }
    return least;
  }

  /** put keeps a measurement for print; main.go has the same names. */
  static void put(String name, double seconds, Sum[] sums) {
    StringBuilder s = new StringBuilder();
    for (int c = 0; c < sums.length; c++)
      s.append(String.format("%s\"%s\":{\"Rows\":%d,\"Nulls\":%d,\"Total\":%s}", c == 0 ? "" : ",", NAMES[c], sums[c].rows, sums[c].nulls, Long.toUnsignedString(sums[c].total)));
    out.put(name, String.format("{\"Seconds\":%.6f,\"Sums\":{%s}}", seconds, s));
  }

  static void print(java.io.PrintStream to) {
    StringBuilder s = new StringBuilder();
    out.forEach((k, v) -> s.append(s.length() == 0 ? "{" : ",\n").append("\"" + k + "\":" + v));
    to.println(s + "}");
  }
}
