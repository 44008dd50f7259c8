package bench;

import java.io.File;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.trevni.*;
import org.apache.trevni.avro.*;

/**
 * Avro's Trevni. usage: Trevni prepare FOLDER ROWS | Trevni measure FOLDER ROWS TMP
 * prepare writes trevni-CODEC.trv to FOLDER. measure scans them, writes the rows to TMP, and reads what it wrote there and what stoa did (stoa-CODEC.trv).
 * Two ways: columns (ColumnFileReader, ColumnFileWriter), the fastest that Avro has; records (AvroColumnReader, AvroColumnWriter), which gives rows.
 */
public final class Trevni {
  static final String[] CODECS = {"null", "snappy"};
  static final int NULLABLE = 7;
  static final Schema SCHEMA = new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"R\",\"fields\":["
      + "{\"name\":\"key\",\"type\":\"long\"},{\"name\":\"int32\",\"type\":\"int\"},{\"name\":\"float64\",\"type\":\"double\"},"
      + "{\"name\":\"low\",\"type\":\"string\"},{\"name\":\"high\",\"type\":\"string\"},"
      + "{\"name\":\"time\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}},{\"name\":\"bool\",\"type\":\"boolean\"},"
      + "{\"name\":\"nullable\",\"type\":[\"null\",\"int\"]},"
      + "{\"name\":\"decimal\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":18,\"scale\":2}},"
      + "{\"name\":\"date\",\"type\":{\"type\":\"int\",\"logicalType\":\"date\"}}]}");

  static ColumnFileMetaData meta(String codec) {
    return new ColumnFileMetaData().setCodec(codec).setChecksum(codec.equals("null") ? "null" : "crc32");
  }

  /** A row as Avro's Trevni takes it: the decimal as bytes. */
  static Object[] row(int i) {
    Object[] row = Rows.row(i);
    row[8] = ByteBuffer.wrap(BigInteger.valueOf((Long) row[8]).toByteArray());
    return row;
  }

  static GenericRecord record(Object[] row) {
    GenericRecord r = new GenericData.Record(SCHEMA);
    for (int c = 0; c < row.length; c++) r.put(c, row[c]);
    return r;
  }

  static void prepare(String folder, int n) throws Exception {
    for (String codec : CODECS) {
      AvroColumnWriter<GenericRecord> w = new AvroColumnWriter<>(SCHEMA, meta(codec));
      for (int i = 0; i < n; i++) w.write(record(row(i)));
      w.writeTo(new File(folder, "trevni-" + codec + ".trv"));
    }
  }

  /** Looks at every value of every column; sums them up if there are sums. */
  static void columns(File f, int n, Rows.Sum[] sums) throws Exception {
    try (ColumnFileReader in = new ColumnFileReader(f)) {
      for (int c = 0; c < in.getColumnCount(); c++) {
        ColumnValues<?> v = in.getValues(c);
        int rows = 0;
        for (; v.hasNext(); rows++) {
          Object x = null;
          v.startRow();
          if (c != NULLABLE || v.nextLength() == 1) x = v.nextValue();
          if (sums != null) sums[c].add(x);
        }
        if (rows != n) throw new IllegalStateException("saw " + rows);
      }
    }
  }

  static void records(File f, int n, Rows.Sum[] sums) throws Exception {
    int rows = 0;
    try (AvroColumnReader<GenericRecord> in = new AvroColumnReader<>(new AvroColumnReader.Params(f))) {
      for (GenericRecord r : in) {
        rows++;
        for (int c = 0; sums != null && c < sums.length; c++) sums[c].add(r.get(c));
      }
    }
    if (rows != n) throw new IllegalStateException("saw " + rows);
  }

  static Rows.Sum[] read(File f, int n, boolean records) throws Exception {
    Rows.Sum[] sums = Rows.sums();
    if (records) records(f, n, sums); else columns(f, n, sums);
    return sums;
  }

  static void write(List<Object[]> rows, ColumnMetaData[] like, String codec, File to) throws Exception {
    ColumnMetaData[] cols = new ColumnMetaData[like.length];
    for (int c = 0; c < cols.length; c++) cols[c] = new ColumnMetaData(like[c].getName(), like[c].getType()).isArray(like[c].isArray());
    ColumnFileWriter w = new ColumnFileWriter(meta(codec), cols);
    for (Object[] row : rows) {
      w.startRow();
      for (int c = 0; c < row.length; c++) {
        if (c == NULLABLE) w.writeLength(row[c] == null ? 0 : 1, c);
        if (row[c] != null) w.writeValue(row[c], c);
      }
      w.endRow();
    }
    w.writeTo(to);
  }

  static void write(List<GenericRecord> records, String codec, File to) throws Exception {
    AvroColumnWriter<GenericRecord> w = new AvroColumnWriter<>(SCHEMA, meta(codec));
    for (GenericRecord r : records) w.write(r);
    w.writeTo(to);
  }

  static void measure(String folder, int n, String tmp) throws Exception {
    for (String codec : CODECS) {
      File f = new File(folder, "trevni-" + codec + ".trv");
      Rows.offer("scan columns " + codec, () -> columns(f, n, null), () -> read(f, n, false));
      Rows.offer("scan records " + codec, () -> records(f, n, null), () -> read(f, n, true));
      Rows.offer("stoa's " + codec, null, () -> read(new File(tmp, "stoa-" + codec + ".trv"), n, true));
    }
    ColumnMetaData[] cols;
    try (ColumnFileReader in = new ColumnFileReader(new File(folder, "trevni-null.trv"))) { cols = in.getColumnMetaData(); }
    List<Object[]> rows = new ArrayList<>(n);
    List<GenericRecord> records = new ArrayList<>(n);
    for (int i = 0; i < n; i++) {
      rows.add(row(i));
      records.add(record(rows.get(i)));
    }
    File to = new File(tmp, "avro.trv");
    for (String codec : CODECS) {
      Rows.offer("write columns " + codec, () -> write(rows, cols, codec, to), () -> read(to, n, false));
      Rows.offer("write records " + codec, () -> write(records, codec, to), () -> read(to, n, true));
    }
  }

  public static void main(String[] a) throws Exception {
    int n = Integer.parseInt(a[2]);
    if (a[0].equals("prepare")) {
      prepare(a[1], n);
      return;
    }
    measure(a[1], n, a[3]);
    Rows.serve(System.out);
  }
}
