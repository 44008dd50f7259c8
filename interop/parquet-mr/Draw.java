package peer;

import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimeUnit;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Type.Repetition;
import org.apache.parquet.schema.Types;

/** Random tables: schemas of all types, lists of three and of two levels, maps, repeated fields; and the writer's options. */
class Draw {
  final Random r;

  Draw(long seed) {
    r = new Random(seed * 0x9E3779B97F4A7C15L);
  }

  static String table(Path dir, long seed) throws Exception {
    Draw d = new Draw(seed);
    int columns = 1 + d.r.nextInt(4), rows = d.r.nextInt(new int[] {4, 60, 400}[d.r.nextInt(3)]);
    List<Type> fields = new ArrayList<>();
    for (int i = 0; i < columns; i++) fields.add(d.field("c" + i, 5));
    MessageType schema = new MessageType("t", fields);
    StringBuilder[] cells = new StringBuilder[columns];
    List<Group> groups = new ArrayList<>();
    int[] gaps = new int[columns];
    for (int c = 0; c < columns; c++) {
      cells[c] = new StringBuilder("[");
      gaps[c] = new int[] {0, 3, 25, 90, 100}[d.r.nextInt(5)];
    }
    for (int i = 0; i < rows; i++) {
      Group g = new SimpleGroup(schema);
      for (int c = 0; c < columns; c++) {
        if (i > 0) cells[c].append(',');
        d.gap = gaps[c];
        d.fill(cells[c], g, c);
      }
      groups.add(g);
    }
    StringBuilder all = new StringBuilder("[");
    for (int c = 0; c < columns; c++) all.append(c > 0 ? "," : "").append(cells[c]).append(']');
    Files.writeString(dir.resolve(seed + ".json"), all.append("]"));
    return d.write(dir.resolve(seed + ".parquet"), schema, groups);
  }

  int gap;

  <T> T one(T... of) {
    return of[r.nextInt(of.length)];
  }

  String write(Path file, MessageType schema, List<Group> rows) throws Exception {
    CompressionCodecName codec = one(CompressionCodecName.UNCOMPRESSED, CompressionCodecName.SNAPPY, CompressionCodecName.GZIP, CompressionCodecName.ZSTD, CompressionCodecName.LZ4_RAW, CompressionCodecName.LZ4);
    WriterVersion version = one(WriterVersion.PARQUET_1_0, WriterVersion.PARQUET_2_0);
    boolean dictionary = r.nextBoolean(), split = r.nextInt(3) == 0, crc = r.nextBoolean(), bloom = r.nextInt(4) == 0;
    int page = one(64, 1000, 1 << 20), pageRows = one(1, 7, 20_000), group = one(1, 2000, 1 << 20);
    ExampleParquetWriter.Builder b = ExampleParquetWriter.builder(new LocalOutputFile(file)).withType(schema).withConf(new PlainParquetConfiguration());
    b.withCompressionCodec(codec).withWriterVersion(version).withDictionaryEncoding(dictionary).withByteStreamSplitEncoding(split).withPageWriteChecksumEnabled(crc);
    b.withBloomFilterEnabled(bloom).withPageSize(page).withPageRowCountLimit(pageRows).withRowGroupSize((long) group).withMinRowCountForPageSizeCheck(1);
    b.withDictionaryPageSize(one(100, 1 << 20));
    try (ParquetWriter<Group> w = b.build()) {
      for (Group g : rows) w.write(g);
    }
    return String.join(" ", "WROTE", file.toString(), codec + "", version + "", "dictionary=" + dictionary, "split=" + split, "page=" + page, "rows=" + pageRows, "group=" + group);
  }

  Repetition repetition() {
    return r.nextInt(4) == 0 ? Repetition.REQUIRED : Repetition.OPTIONAL;
  }

  /** A field of the table or of a struct: only these can be repeated by themselves. */
  Type field(String name, int depth) {
    if (depth == 0 || r.nextInt(10) > 0) return type(name, repetition(), depth);
    return r.nextBoolean() ? leaf(name, Repetition.REPEATED) : struct(name, Repetition.REPEATED, depth);
  }

  Type type(String name, Repetition rep, int depth) {
    switch (depth == 0 ? 9 : r.nextInt(9)) {
      case 0: // a list of three levels
        return Types.list(rep).element(type("element", repetition(), depth - 1)).named(name);
      case 1: // of two: the repeated field is the item
        Type item = r.nextBoolean() ? leaf("element", Repetition.REPEATED) : new GroupType(Repetition.REPEATED, one("array", name + "_tuple"), field("x", depth - 1));
        return Types.buildGroup(rep).as(LogicalTypeAnnotation.listType()).addField(item).named(name);
      case 2:
        return Types.map(rep).key(leaf("key", Repetition.REQUIRED)).value(type("value", repetition(), depth - 1)).named(name);
      case 3, 4:
        return struct(name, rep, depth);
      default:
        return leaf(name, rep);
    }
  }

  Type struct(String name, Repetition rep, int depth) {
    List<Type> in = new ArrayList<>();
    for (int k = 0, n = 1 + r.nextInt(3); k < n; k++) in.add(field("f" + k, depth - 1));
    return new GroupType(rep, name, in);
  }

  Type leaf(String name, Repetition rep) {
    switch (r.nextInt(27)) {
      case 0: return Types.primitive(PrimitiveTypeName.BOOLEAN, rep).named(name);
      case 1: return Types.primitive(PrimitiveTypeName.FLOAT, rep).named(name);
      case 2: return Types.primitive(PrimitiveTypeName.DOUBLE, rep).named(name);
      case 3: return Types.primitive(PrimitiveTypeName.INT96, rep).named(name);
      case 4: return Types.primitive(PrimitiveTypeName.BINARY, rep).named(name);
      case 5, 6: return as(PrimitiveTypeName.BINARY, rep, LogicalTypeAnnotation.stringType()).named(name);
      case 7: return as(PrimitiveTypeName.BINARY, rep, one(LogicalTypeAnnotation.enumType(), LogicalTypeAnnotation.jsonType(), LogicalTypeAnnotation.bsonType())).named(name);
      case 8: return as(PrimitiveTypeName.BINARY, rep, LogicalTypeAnnotation.decimalType(3, 30)).named(name);
      case 9: return as(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, rep, LogicalTypeAnnotation.decimalType(9, 38)).length(16).named(name);
      case 10: return as(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, rep, LogicalTypeAnnotation.decimalType(2, 60)).length(26).named(name);
      case 11: return as(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, rep, LogicalTypeAnnotation.float16Type()).length(2).named(name);
      case 12: return as(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, rep, LogicalTypeAnnotation.uuidType()).length(16).named(name);
      case 13: return Types.primitive(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, rep).length(1 + r.nextInt(20)).named(name);
      case 14: return as(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, rep, LogicalTypeAnnotation.IntervalLogicalTypeAnnotation.getInstance()).length(12).named(name);
      case 15: return as(PrimitiveTypeName.INT32, rep, LogicalTypeAnnotation.intType(one(8, 16, 32), r.nextBoolean())).named(name);
      case 16: return as(PrimitiveTypeName.INT64, rep, LogicalTypeAnnotation.intType(64, r.nextBoolean())).named(name);
      case 17: return as(PrimitiveTypeName.INT32, rep, LogicalTypeAnnotation.dateType()).named(name);
      case 18: return as(PrimitiveTypeName.INT32, rep, LogicalTypeAnnotation.timeType(r.nextBoolean(), TimeUnit.MILLIS)).named(name);
      case 19: return as(PrimitiveTypeName.INT64, rep, LogicalTypeAnnotation.timeType(r.nextBoolean(), one(TimeUnit.MICROS, TimeUnit.NANOS))).named(name);
      case 20, 21: return as(PrimitiveTypeName.INT64, rep, LogicalTypeAnnotation.timestampType(r.nextBoolean(), one(TimeUnit.values()))).named(name);
      case 22: return as(PrimitiveTypeName.INT32, rep, LogicalTypeAnnotation.decimalType(2, 9)).named(name);
      case 23: return as(PrimitiveTypeName.INT64, rep, LogicalTypeAnnotation.decimalType(4, 18)).named(name);
      case 24: return Types.primitive(PrimitiveTypeName.INT64, rep).named(name);
      default: return Types.primitive(PrimitiveTypeName.INT32, rep).named(name);
    }
  }

  Types.PrimitiveBuilder<PrimitiveType> as(PrimitiveTypeName p, Repetition rep, LogicalTypeAnnotation a) {
    return Types.primitive(p, rep).as(a);
  }

  // Cells are printed as they are drawn, not as the groups return them.

  void fill(StringBuilder s, Group g, int c) {
    Type t = g.getType().getType(c);
    if (t.isRepetition(Repetition.REPEATED)) {
      s.append('[');
      for (int i = 0, n = items(); i < n; i++) {
        if (i > 0) s.append(',');
        value(s, g, c, t);
      }
      s.append(']');
    } else if (t.isRepetition(Repetition.OPTIONAL) && r.nextInt(100) < gap) {
      s.append("null");
    } else {
      value(s, g, c, t);
    }
  }

  int items() {
    return one(0, 0, 1, 2, 5);
  }

  void value(StringBuilder s, Group g, int c, Type t) {
    if (t.isPrimitive()) {
      primitive(s, g, c, t.asPrimitiveType());
      return;
    }
    Group in = g.addGroup(c);
    LogicalTypeAnnotation a = t.getLogicalTypeAnnotation();
    if (a instanceof LogicalTypeAnnotation.ListLogicalTypeAnnotation && threeLevels(t)) {
      s.append('[');
      for (int i = 0, n = items(); i < n; i++) {
        if (i > 0) s.append(',');
        fill(s, in.addGroup(0), 0);
      }
      s.append(']');
    } else if (a != null) { // a list of two levels, or a map: the repeated field is the list
      fill(s, in, 0);
    } else {
      s.append('[');
      for (int k = 0; k < t.asGroupType().getFieldCount(); k++) {
        if (k > 0) s.append(',');
        fill(s, in, k);
      }
      s.append(']');
    }
  }

  static boolean threeLevels(Type list) {
    return list.asGroupType().getType(0).getName().equals("list");
  }

  long bounded(long most) {
    long v = r.nextInt(3) == 0 ? r.nextInt(7) : r.nextLong();
    return most == 0 ? v : v % (most + 1);
  }

  void primitive(StringBuilder s, Group g, int c, PrimitiveType t) {
    LogicalTypeAnnotation a = t.getLogicalTypeAnnotation();
    switch (t.getPrimitiveTypeName()) {
      case BOOLEAN -> {
        boolean v = r.nextBoolean();
        g.add(c, v);
        s.append(v);
      }
      case FLOAT -> {
        float v = one(r.nextFloat(), (float) r.nextInt(5), -0f, Float.NaN, Float.POSITIVE_INFINITY);
        g.add(c, v);
        Cells.bits(s, Float.floatToRawIntBits(v), 4);
      }
      case DOUBLE -> {
        double v = one(r.nextDouble(), (double) r.nextInt(5), -0.0, Double.NaN, Double.NEGATIVE_INFINITY);
        g.add(c, v);
        Cells.bits(s, Double.doubleToRawLongBits(v), 8);
      }
      case INT32 -> {
        int v = (int) int32(a);
        g.add(c, v);
        Cells.number(s, t, v);
      }
      case INT64 -> {
        long v = int64(a);
        g.add(c, v);
        Cells.number(s, t, v);
      }
      case INT96 -> int96(s, g, c);
      default -> bytes(s, g, c, t, a);
    }
  }

  long int32(LogicalTypeAnnotation a) {
    if (a instanceof LogicalTypeAnnotation.IntLogicalTypeAnnotation x && x.getBitWidth() < 32)
      return x.isSigned() ? bounded((1L << x.getBitWidth() - 1) - 1) : Math.abs(bounded((1L << x.getBitWidth()) - 1));
    if (a instanceof LogicalTypeAnnotation.DecimalLogicalTypeAnnotation) return bounded(999_999_999);
    if (a instanceof LogicalTypeAnnotation.TimeLogicalTypeAnnotation) return Math.abs(bounded(86_399_999));
    return bounded(0);
  }

  long int64(LogicalTypeAnnotation a) {
    if (a instanceof LogicalTypeAnnotation.DecimalLogicalTypeAnnotation) return bounded(999_999_999_999_999_999L);
    if (a instanceof LogicalTypeAnnotation.TimeLogicalTypeAnnotation) return Math.abs(bounded(86_399_999_999L));
    return bounded(0);
  }

  void int96(StringBuilder s, Group g, int c) {
    long day = r.nextInt(200_000) - 100_000, nanos = Math.abs(r.nextLong() % 86_400_000_000_000L);
    byte[] b = new byte[12];
    for (int k = 0; k < 8; k++) b[k] = (byte) (nanos >>> 8 * k);
    for (int k = 0; k < 4; k++) b[8 + k] = (byte) (day + 2_440_588 >>> 8 * k);
    g.add(c, Binary.fromConstantByteArray(b));
    s.append('"').append(BigInteger.valueOf(day).multiply(BigInteger.valueOf(86_400_000_000_000L)).add(BigInteger.valueOf(nanos))).append('"');
  }

  void bytes(StringBuilder s, Group g, int c, PrimitiveType t, LogicalTypeAnnotation a) {
    byte[] b;
    if (a instanceof LogicalTypeAnnotation.DecimalLogicalTypeAnnotation x) {
      BigInteger v = new BigInteger(r.nextInt(3) == 0 ? 4 : (int) (x.getPrecision() * 3.3), r);
      b = (r.nextBoolean() ? v.negate() : v).toByteArray();
      if (t.getTypeLength() > 0) {
        byte[] wide = new byte[t.getTypeLength()];
        java.util.Arrays.fill(wide, (byte) (b[0] >> 7));
        System.arraycopy(b, 0, wide, wide.length - b.length, b.length);
        b = wide;
      }
    } else if (t.getTypeLength() > 0) {
      b = new byte[t.getTypeLength()];
      if (r.nextInt(3) == 0) b[b.length - 1] = (byte) r.nextInt(4);
      else r.nextBytes(b);
    } else {
      StringBuilder w = new StringBuilder();
      for (int k = 0, n = one(0, 1, 3, 3, 20); k < n; k++) w.append(one("a", "b", "ä", "€", "\uD83D\uDE00", "\"", "\n"));
      b = w.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }
    Binary v = Binary.fromConstantByteArray(b);
    g.add(c, v);
    Cells.bytes(s, t, v);
  }
}
