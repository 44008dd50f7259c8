package bench;

import java.io.File;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.TimeZone;
import org.apache.carbondata.core.metadata.datatype.*;
import org.apache.carbondata.core.scan.expression.*;
import org.apache.carbondata.core.scan.expression.conditional.EqualToExpression;
import org.apache.carbondata.sdk.file.*;

/**
 * CarbonData's SDK. usage: Carbon prepare FOLDER ROWS | Carbon measure FOLDER ROWS TMP KEY
 * prepare writes FOLDER/carbon. measure scans that, looks for one key, writes the rows to TMP, and reads what it wrote there and what stoa did (TMP/stoa).
 * CarbonData's timestamps are milliseconds, so the column time, which has microseconds, is a LONG; all others are what they are called.
 */
public final class Carbon {
  static final int DECIMAL = 8, DATE = 9;

  static CarbonWriter writer(String dir) throws Exception {
    Field[] fields = {new Field("key", DataTypes.LONG), new Field("int32", DataTypes.INT), new Field("float64", DataTypes.DOUBLE), new Field("low", DataTypes.STRING),
        new Field("high", DataTypes.STRING), new Field("time", DataTypes.LONG), new Field("bool", DataTypes.BOOLEAN), new Field("nullable", DataTypes.INT),
        new Field("decimal", DataTypes.createDecimalType(18, 2)), new Field("date", DataTypes.DATE)};
    return CarbonWriter.builder().outputPath(dir).sortBy(new String[] {"key"}).withBlockletSize(16).withBlockSize(64)
        .withTableProperty("local_dictionary_enable", "true").withCsvInput(new Schema(fields)).writtenBy("bench").build();
  }

  /** A row as the writer takes it: texts, which it keeps. */
  static String[] row(int i) {
    Object[] row = Rows.row(i);
    row[DECIMAL] = BigDecimal.valueOf((Long) row[DECIMAL], 2).toPlainString();
    row[DATE] = LocalDate.ofEpochDay((Integer) row[DATE]);
    String[] out = new String[row.length];
    for (int c = 0; c < out.length; c++) out[c] = row[c] == null ? null : row[c].toString();
    return out;
  }

  static void prepare(String folder, int n) throws Exception {
    CarbonWriter w = writer(folder + "/carbon");
    for (int i = 0; i < n; i++) w.write(row(i));
    w.close();
  }

  /** What it reads, every value of every row; sums it up if there are sums. Dates come as texts. */
  static long scan(String dir, boolean rowReader, Long key, Rows.Sum[] sums) throws Exception {
    CarbonReaderBuilder b = CarbonReader.builder(dir, "bench" + System.nanoTime()).projection(Rows.NAMES);
    if (rowReader) b.withRowRecordReader();
    if (key != null) b.filter(new EqualToExpression(new ColumnExpression("key", DataTypes.LONG), new LiteralExpression(key, DataTypes.LONG)));
    CarbonReader<Object> r = b.build();
    long n = 0;
    for (; r.hasNext(); n++) {
      Object[] row = (Object[]) r.readNextRow();
      for (int c = 0; sums != null && c < sums.length; c++) sums[c].add(c == DATE ? LocalDate.parse((String) row[c]) : row[c]);
    }
    r.close();
    return n;
  }

  static Rows.Sum[] read(String dir, boolean rowReader, Long key) throws Exception {
    Rows.Sum[] sums = Rows.sums();
    scan(dir, rowReader, key, sums);
    return sums;
  }

  static void remove(File f) {
    File[] in = f.listFiles();
    if (in != null) for (File x : in) remove(x);
    f.delete();
  }

  static void measure(String folder, int n, String tmp, long key) throws Exception {
    String dir = folder + "/carbon", to = tmp + "/carbon";
    Rows.offer("scan vector", () -> scan(dir, false, null, null), () -> read(dir, false, null));
    Rows.offer("scan row", () -> scan(dir, true, null, null), () -> read(dir, true, null));
    Rows.offer("key", () -> scan(dir, false, key, null), () -> read(dir, false, key));
    Rows.offer("stoa's", null, () -> read(tmp + "/stoa", false, null));
    String[][] rows = new String[n][];
    for (int i = 0; i < n; i++) rows[i] = row(i);
    Rows.offer("write", () -> {
      remove(new File(to));
      CarbonWriter w = writer(to);
      for (String[] r : rows) w.write(r);
      w.close();
    }, () -> read(to, false, null));
  }

  public static void main(String[] a) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    PrintStream out = System.out;
    System.setOut(System.err); // it prints there
    String folder = new File(a[1]).getCanonicalPath();
    int n = Integer.parseInt(a[2]);
    if (a[0].equals("prepare")) {
      prepare(folder, n);
    } else {
      measure(folder, n, a[3], Long.parseLong(a[4]));
      Rows.serve(out);
    }
    out.flush();
    Runtime.getRuntime().halt(0);
  }
}
