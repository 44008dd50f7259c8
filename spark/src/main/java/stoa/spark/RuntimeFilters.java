package stoa.spark;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.In;
import stoa.spark.arrow.Field;

/** What a join has found of the other side, as a predicate: keys that are in a list. */
final class RuntimeFilters {
  private static final int MOST = 5000;
  private static final int LENGTH = 60_000;

  private RuntimeFilters() {}

  static boolean takes(Field f) {
    return f.kind == Field.Kind.INT || f.kind == Field.Kind.UTF8 || f.kind == Field.Kind.DECIMAL && f.precision <= 38;
  }

  /** The text of what can be said; Spark's join does the rest. */
  static String text(Filter[] filters, List<Field> fields) {
    List<String> out = new ArrayList<>();
    for (Filter f : filters) {
      String t = f instanceof In ? text((In) f, fields) : null;
      if (t != null && t.length() < LENGTH / filters.length) {
        out.add(t);
      }
    }
    return String.join(" and ", out);
  }

  private static String text(In in, List<Field> fields) {
    for (Field f : fields) {
      if (takes(f) && (in.attribute().equals(f.name) || in.attribute().equals("`" + f.name.replace("`", "``") + "`"))) {
        return text(Predicates.name(f.name), in.values());
      }
    }
    return null;
  }

  private static String text(String name, Object[] values) {
    if (values.length > MOST) {
      return null;
    }
    List<String> out = new ArrayList<>();
    for (Object v : values) {
      if (v instanceof Byte || v instanceof Short || v instanceof Integer || v instanceof Long) {
        out.add(v.toString());
      } else if (v instanceof BigDecimal) {
        out.add("decimal '" + ((BigDecimal) v).toPlainString() + "'");
      } else if (v instanceof String && ((String) v).indexOf('\0') < 0) {
        out.add("'" + ((String) v).replace("'", "''") + "'");
      } else if (v != null) { // null is equal to nothing
        return null;
      }
    }
    return "(" + name + " in (" + String.join(", ", out) + "))";
  }
}
