import io.trino.Session;
import io.trino.plugin.iceberg.IcebergPlugin;
import io.trino.spi.type.*;
import io.trino.testing.DistributedQueryRunner;
import io.trino.testing.MaterializedRow;
import io.trino.testing.QueryRunner;
import io.trino.testing.TestingSession;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Trino in this process, with a catalog of Iceberg over the files below a directory, at local:///. Each line of standard
 *  input is a statement; the answer is a line of JSON in the file of the second argument: the rows, or a text with what
 *  failed.    usage: Trino DIR ANSWERS */
public class Trino {
  public static void main(String[] args) throws Exception {
    Session session = TestingSession.testSessionBuilder().setCatalog("ice").setSchema("db").setTimeZoneKey(TimeZoneKey.UTC_KEY).build();
    try (QueryRunner trino = DistributedQueryRunner.builder(session).setWorkerCount(0).build();
        PrintStream out = new PrintStream(args[1], StandardCharsets.UTF_8)) {
      trino.installPlugin(new IcebergPlugin());
      trino.createCatalog("ice", "iceberg", Map.of("iceberg.catalog.type", "TESTING_FILE_METASTORE",
          "hive.metastore.catalog.dir", "local:///metastore", "fs.native-local.enabled", "true",
          "local.location", Path.of(args[0]).toAbsolutePath().toString(), "iceberg.register-table-procedure.enabled", "true"));
      trino.execute("CREATE SCHEMA ice.db");
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String sql; (sql = in.readLine()) != null; out.flush()) {
        try {
          out.println(json(trino.execute(sql).getMaterializedRows()));
        } catch (Throwable e) {
          e.printStackTrace();
          out.println(text(e.toString()));
        }
      }
    }
    System.exit(0);
  }

  /** A value as JSON: instants and times in nanoseconds, dates in days, bytes as hexadecimal digits, floating-point
   *  numbers by their bits as a double, decimals as text without trailing zeros, maps as sorted pairs. */
  static String json(Object v) {
    return switch (v) {
      case null -> "null";
      case Boolean b -> b.toString();
      case Float f -> bits(f);
      case Double d -> bits(d);
      case SqlDate d -> Integer.toString(d.getDays());
      case SqlTime t -> Long.toString(t.getPicos() / 1000);
      case SqlTimestamp t -> Long.toString(t.getEpochMicros() * 1000 + t.getPicosOfMicros() / 1000);
      case SqlTimestampWithTimeZone t -> Long.toString(t.getEpochMillis() * 1_000_000 + t.getPicosOfMilli() / 1000);
      case java.time.LocalDate d -> Long.toString(d.toEpochDay());
      case java.time.LocalTime t -> Long.toString(t.toNanoOfDay());
      case java.time.LocalDateTime t -> instant(t.toInstant(java.time.ZoneOffset.UTC));
      case java.time.ZonedDateTime t -> instant(t.toInstant());
      case SqlDecimal d -> decimal(d.toBigDecimal());
      case BigDecimal d -> decimal(d);
      case Number n -> n.toString();
      case SqlVarbinary b -> text(HexFormat.of().formatHex(b.getBytes()));
      case byte[] b -> text(HexFormat.of().formatHex(b));
      case MaterializedRow r -> json(r.getFields());
      case List<?> l -> "[" + String.join(",", l.stream().map(Trino::json).toList()) + "]";
      case Map<?, ?> m -> {
        TreeMap<String, String> sorted = new TreeMap<>();
        m.forEach((k, x) -> sorted.put(json(k), json(x)));
        yield "[" + String.join(",", sorted.entrySet().stream().map(e -> "[" + e.getKey() + "," + e.getValue() + "]").toList()) + "]";
      }
      default -> text(v.toString());
    };
  }

  static String instant(java.time.Instant t) {
    return Long.toString(Math.addExact(Math.multiplyExact(t.getEpochSecond(), 1_000_000_000L), t.getNano()));
  }

  static String bits(double d) {
    return text(Double.isNaN(d) ? "NaN" : Long.toHexString(Double.doubleToLongBits(d == 0 ? 0 : d)));
  }

  static String decimal(BigDecimal d) {
    return text(d.signum() == 0 ? "0" : d.stripTrailingZeros().toPlainString());
  }

  static String text(String s) {
    StringBuilder b = new StringBuilder("\"");
    for (char c : s.toCharArray()) {
      b.append(c < ' ' || c == '"' || c == '\\' || c > '~' ? String.format("\\u%04x", (int) c) : Character.toString(c));
    }
    return b.append('"').toString();
  }
}
