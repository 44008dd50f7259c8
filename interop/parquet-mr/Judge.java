package peer;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.parquet.conf.ParquetConfiguration;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.filter2.compat.FilterCompat;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.api.ReadSupport;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.Type;

/**
 * usage: read LIST | write DIR SEED N
 *
 * read: LIST has a line "FILE FILE.json" for each; the cells of FILE are written to FILE.json, a list of columns. Then values of columns are searched by filters,
 * through column indexes, dictionaries and Bloom filters. Prints "READ FILE rows filters", or "WRONG FILE reason".
 * write: N random tables, DIR/SEED.parquet with the cells as drawn in DIR/SEED.json, and so on. Prints "WROTE FILE options".
 */
public class Judge {
  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    if (args[0].equals("write")) {
      for (long seed = Long.parseLong(args[2]), end = seed + Long.parseLong(args[3]); seed < end; seed++) out.println(Draw.table(Path.of(args[1]), seed));
    } else {
      for (String line : Files.readAllLines(Path.of(args[1]))) {
        String[] names = line.split(" ");
        try {
          out.println("READ " + names[0] + " " + read(names[0], Path.of(names[1])));
        } catch (Throwable e) {
          StringBuilder why = new StringBuilder();
          for (Throwable t = e; t != null; t = t.getCause()) why.append(t).append("; ");
          out.println("WRONG " + names[0] + " " + why.toString().replace('\n', ' '));
        }
      }
    }
    out.flush();
  }

  static class Reader extends ParquetReader.Builder<Group> {
    Reader(InputFile f, ParquetConfiguration c) {
      super(f, c);
    }

    @Override
    protected ReadSupport<Group> getReadSupport() {
      return new GroupReadSupport();
    }
  }

  static List<Group> rows(String file, FilterCompat.Filter filter) throws Exception {
    Reader b = new Reader(new LocalInputFile(Path.of(file)), new PlainParquetConfiguration());
    b.usePageChecksumVerification(true);
    if (filter != null) b.withFilter(filter);
    List<Group> out = new ArrayList<>();
    try (ParquetReader<Group> r = b.build()) {
      for (Group g; (g = r.read()) != null; ) out.add(g);
    }
    return out;
  }

  static String read(String file, Path to) throws Exception {
    List<Group> rows = rows(file, null);
    int filters = 0;
    StringBuilder s = new StringBuilder("[");
    if (!rows.isEmpty()) {
      GroupType schema = rows.get(0).getType();
      for (int c = 0; c < schema.getFieldCount(); c++) {
        s.append(c > 0 ? ",[" : "[");
        for (int i = 0; i < rows.size(); i++) {
          if (i > 0) s.append(',');
          Cells.cell(s, rows.get(i), c);
        }
        s.append(']');
        filters += filters(file, rows, c);
      }
    }
    Files.writeString(to, s.append("]"));
    return rows.size() + " " + filters;
  }

  /** Searches some values of a flat column by filters, and throws unless exactly the rows with the value are found. */
  static int filters(String file, List<Group> rows, int c) throws Exception {
    Type t = rows.get(0).getType().getType(c);
    if (!t.isPrimitive() || t.isRepetition(Type.Repetition.REPEATED)) return 0;
    Random r = new Random(rows.size() * 31L + c);
    int asked = 0;
    for (int k = 0; k < 4; k++) {
      Group g = rows.get(r.nextInt(rows.size()));
      boolean isNull = g.getFieldRepetitionCount(c) == 0;
      FilterPredicate p = equal(t, g, c, isNull);
      if (p == null) return asked;
      long want = rows.stream().filter(x -> isNull ? x.getFieldRepetitionCount(c) == 0 : x.getFieldRepetitionCount(c) == 1 && same(t, x, g, c)).count();
      int got = rows(file, FilterCompat.get(p)).size();
      if (got != want) throw new Exception(p + ": " + got + " rows, not " + want);
      asked++;
    }
    return asked;
  }

  static boolean same(Type t, Group a, Group b, int c) {
    return switch (t.asPrimitiveType().getPrimitiveTypeName()) {
      case INT32 -> a.getInteger(c, 0) == b.getInteger(c, 0);
      case INT64 -> a.getLong(c, 0) == b.getLong(c, 0);
      case BOOLEAN -> a.getBoolean(c, 0) == b.getBoolean(c, 0);
      default -> a.getBinary(c, 0).equals(b.getBinary(c, 0));
    };
  }

  static FilterPredicate equal(Type t, Group g, int c, boolean isNull) {
    String n = t.getName();
    return switch (t.asPrimitiveType().getPrimitiveTypeName()) {
      case INT32 -> FilterApi.eq(FilterApi.intColumn(n), isNull ? null : g.getInteger(c, 0));
      case INT64 -> FilterApi.eq(FilterApi.longColumn(n), isNull ? null : g.getLong(c, 0));
      case BOOLEAN -> FilterApi.eq(FilterApi.booleanColumn(n), isNull ? null : g.getBoolean(c, 0));
      case BINARY, FIXED_LEN_BYTE_ARRAY -> Cells.half(t) ? null : FilterApi.eq(FilterApi.binaryColumn(n), isNull ? null : g.getBinary(c, 0));
      default -> null;
    };
  }
}
