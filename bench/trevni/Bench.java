package bench;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.trevni.*;

/** Writes and scans 1 M rows of 10 columns with Avro's Trevni; prints "write|scan CODEC SECONDS" of processor time, the best of several. */
public final class Bench {
  static final int N = 1 << 20;
  static long mix(long x) { x += 0x9E3779B97F4A7C15L; x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L; x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL; return x ^ (x >>> 31); }

  /** Processor time of the whole process: other work on the machine does not count. */
  static long cpu() { return ((com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime(); }

  public static void main(String[] a) throws Exception {
    String dir = a[0];
    int runs = Integer.parseInt(a[1]);
    Object[][] rows = new Object[N][];
    for (int i = 0; i < N; i++) {
      long h = mix(i);
      rows[i] = new Object[] {i / 3, (int) h, h >> 20, 1700000000000000L + 1000L * i, (float) (h & 0xffff) / 8, (double) (h >> 30) / 7, "word" + (h & 1023), "s" + i,
          ByteBuffer.wrap(Long.toHexString(h).getBytes(StandardCharsets.US_ASCII)), (h & 4) == 0};
    }
    ValueType[] types = {ValueType.INT, ValueType.INT, ValueType.LONG, ValueType.LONG, ValueType.FLOAT, ValueType.DOUBLE, ValueType.STRING, ValueType.STRING, ValueType.BYTES, ValueType.BOOLEAN};
    for (String spec : new String[] {"null null", "snappy crc32", "deflate crc32"}) {
      String codec = spec.split(" ")[0], sum = spec.split(" ")[1];
      File f = new File(dir, "java-" + codec + ".trv");
      double write = 1e9, scan = 1e9;
      for (int r = 0; r < runs; r++) {
        long t = cpu();
        ColumnMetaData[] cs = new ColumnMetaData[types.length];
        for (int i = 0; i < cs.length; i++) cs[i] = new ColumnMetaData("c" + i, types[i]);
        ColumnFileMetaData m = new ColumnFileMetaData();
        m.setCodec(codec); m.setChecksum(sum);
        ColumnFileWriter w = new ColumnFileWriter(m, cs);
        for (Object[] row : rows) w.writeRow(row);
        w.writeTo(f);
        write = Math.min(write, (cpu() - t) / 1e9);
      }
      long seen = 0;
      for (int r = 0; r < runs; r++) {
        long t = cpu();
        try (ColumnFileReader in = new ColumnFileReader(f)) {
          for (int c = 0; c < types.length; c++) {
            ColumnValues<? extends Comparable> v = in.getValues(c);
            while (v.hasNext()) if (v.next() != null) seen++;
          }
        }
        scan = Math.min(scan, (cpu() - t) / 1e9);
      }
      if (seen != 10L * N * runs) throw new IllegalStateException("saw " + seen);
      System.out.printf("write %s %.4f%nscan %s %.4f%n", codec, write, codec, scan);
    }
  }
}
