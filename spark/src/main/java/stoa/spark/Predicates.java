package stoa.spark;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import stoa.spark.arrow.Field;

/**
 * Spark's predicates in the words of {@code --where}. What is translated means exactly the same, with three values and
 * for NaN, so Spark does not repeat it; all else is not translated.
 */
final class Predicates {
  private static final int DEPTH = 40; // stoa's parser has a limit, too
  private static final int LENGTH = 100_000; // an argument may have 128 KiB
  private static final int IN = 2000;

  private final List<Field> fields;

  Predicates(List<Field> fields) {
    this.fields = fields;
  }

  /** Whether one more text fits what was taken. */
  boolean fits(List<String> taken, String more) {
    int n = more.length();
    for (String t : taken) {
      n += t.length() + 5;
    }
    return n <= LENGTH;
  }

  /** The text, in parentheses where it needs them; null: it cannot be said. */
  String text(Predicate p) {
    return text(p, 0);
  }

  private String text(Predicate p, int depth) {
    Expression[] c = p.children();
    if (depth > DEPTH) {
      return null;
    }
    switch (p.name()) {
      case "AND": return joined(c, " and ", depth);
      case "OR": return joined(c, " or ", depth);
      case "NOT":
        String of = c.length == 1 && c[0] instanceof Predicate ? text((Predicate) c[0], depth + 1) : null;
        return of == null ? null : "(not " + of + ")";
      case "ALWAYS_TRUE": return "true";
      case "ALWAYS_FALSE": return "false";
      case "IS_NULL": return asked(c, " is null");
      case "IS_NOT_NULL": return asked(c, " is not null");
      case "IN": return in(c);
      case "STARTS_WITH": return like(c, "", "%");
      case "ENDS_WITH": return like(c, "%", "");
      case "CONTAINS": return like(c, "%", "%");
      case "=": case "<>": case "<": case "<=": case ">": case ">=": return compared(p.name(), c);
      case "<=>": return same(c);
      default: return null;
    }
  }

  private String joined(Expression[] c, String by, int depth) {
    StringBuilder out = new StringBuilder("(");
    for (int i = 0; i < c.length; i++) {
      String t = c[i] instanceof Predicate ? text((Predicate) c[i], depth + 1) : null;
      if (t == null) {
        return null;
      }
      out.append(i == 0 ? "" : by).append(t);
    }
    return out.append(")").toString();
  }

  /** The field that a reference names; null if it is none, or names one inside a list. */
  private Field field(Expression e) {
    if (!(e instanceof NamedReference)) {
      return null;
    }
    List<Field> in = fields;
    Field found = null;
    for (String name : ((NamedReference) e).fieldNames()) {
      if (found != null && found.kind != Field.Kind.STRUCT) {
        return null;
      }
      Field next = null;
      for (Field f : in) {
        if (f.name.equals(name)) {
          if (next != null) {
            return null; // two of a name
          }
          next = f;
        }
      }
      if (next == null) {
        return null;
      }
      found = next;
      in = next.children;
    }
    return found;
  }

  static String name(String s) {
    return "\"" + s.replace("\"", "\"\"") + "\"";
  }

  private static String path(Expression e) {
    StringBuilder out = new StringBuilder();
    for (String s : ((NamedReference) e).fieldNames()) {
      if (s.indexOf('\0') >= 0) {
        return null;
      }
      out.append(out.length() == 0 ? "" : ".").append(name(s));
    }
    return out.toString();
  }

  private String asked(Expression[] c, String what) {
    Field f = c.length == 1 ? field(c[0]) : null;
    if (f == null || f.kind == Field.Kind.UNION || f.kind == Field.Kind.RUN_ENDS || path(c[0]) == null) {
      return null;
    }
    return "(" + path(c[0]) + what + ")";
  }

  private String compared(String op, Expression[] c) {
    if (c.length == 2 && c[0] instanceof Literal) { // 3 < x is x > 3
      String turned = op.startsWith("<") && !op.equals("<>") ? op.replace('<', '>') : op.replace('>', '<');
      return compared(op.equals("<>") || op.equals("=") ? op : turned, new Expression[] {c[1], c[0]});
    }
    String v = c.length == 2 ? literal(c[0], c[1]) : null;
    return v == null ? null : "(" + path(c[0]) + " " + op + " " + v + ")";
  }

  /** Equal, or both null: never unknown. */
  private String same(Expression[] c) {
    if (c.length == 2 && c[0] instanceof Literal) {
      return same(new Expression[] {c[1], c[0]});
    }
    String v = c.length == 2 ? literal(c[0], c[1]) : null;
    if (v == null) {
      return null;
    }
    String p = path(c[0]);
    return v.equals("null") ? "(" + p + " is null)" : "(" + p + " is not null and " + p + " = " + v + ")";
  }

  private String in(Expression[] c) {
    if (c.length < 2 || c.length > IN) {
      return null;
    }
    StringBuilder out = new StringBuilder("(").append(field(c[0]) == null ? "" : path(c[0])).append(" in (");
    for (int i = 1; i < c.length; i++) {
      String v = literal(c[0], c[i]);
      if (v == null) {
        return null;
      }
      out.append(i == 1 ? "" : ", ").append(v);
    }
    return out.append("))").toString();
  }

  private String like(Expression[] c, String before, String after) {
    if (c.length != 2 || field(c[0]) == null || path(c[0]) == null || !(c[1] instanceof Literal)) {
      return null;
    }
    Object v = ((Literal<?>) c[1]).value();
    if (!textual(field(c[0])) || !(v instanceof UTF8String) || !plain(((UTF8String) v).getBytes())) {
      return null;
    }
    String s = v.toString().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("'", "''");
    return "(" + path(c[0]) + " like '" + before + s + after + "')";
  }

  private static boolean textual(Field f) {
    return f.kind == Field.Kind.UTF8 || f.kind == Field.Kind.LARGE_UTF8 || f.kind == Field.Kind.UTF8_VIEW;
  }

  /** Whether bytes are UTF-8 without anything that has no place in an argument. */
  private static boolean plain(byte[] b) {
    String s = new String(b, StandardCharsets.UTF_8);
    return s.indexOf('\0') < 0 && java.util.Arrays.equals(s.getBytes(StandardCharsets.UTF_8), b);
  }

  /** The literal that a column is compared with; null: they cannot be compared in stoa as in Spark. */
  private String literal(Expression column, Expression e) {
    Field f = field(column);
    if (f == null || path(column) == null || !(e instanceof Literal)) {
      return null;
    }
    Object v = ((Literal<?>) e).value();
    switch (f.kind) {
      case BOOL: return v == null ? "null" : v instanceof Boolean ? v.toString() : null;
      case INT: return v == null ? "null" : whole(v);
      case DECIMAL: return f.precision > 38 ? null : v == null ? "null" : whole(v);
      case FLOAT: return f.bits == 16 ? null : v == null ? "null" : floating(v);
      case DATE:
        return f.bits == 64 ? instant(v) : v == null ? "null" : v instanceof Integer
            ? "date '" + LocalDate.ofEpochDay((Integer) v) + "'" : null;
      case TIMESTAMP: return f.isNanos() ? null : instant(v);
      case UTF8: case LARGE_UTF8: case UTF8_VIEW: case BINARY: case LARGE_BINARY: case BINARY_VIEW: case FIXED_BINARY:
        return v == null ? "null" : v instanceof UTF8String ? quoted(((UTF8String) v).getBytes())
            : v instanceof byte[] ? hex((byte[]) v) : null;
      default: return null;
    }
  }

  private static String whole(Object v) {
    if (v instanceof Byte || v instanceof Short || v instanceof Integer || v instanceof Long) {
      return v.toString();
    }
    BigDecimal d = v instanceof Decimal ? ((Decimal) v).toJavaBigDecimal() : v instanceof BigDecimal ? (BigDecimal) v
        : null;
    return d == null ? null : "decimal '" + d.toPlainString() + "'";
  }

  /** A float as the double that it is, so that nothing is rounded on the way. */
  private static String floating(Object v) {
    if (!(v instanceof Float || v instanceof Double)) {
      return null;
    }
    return "float '" + ((Number) v).doubleValue() + "'";
  }

  private static String instant(Object v) {
    if (v == null) {
      return "null";
    }
    if (!(v instanceof Long)) {
      return null;
    }
    long micros = (Long) v;
    Instant i = Instant.ofEpochSecond(Math.floorDiv(micros, 1_000_000L), Math.floorMod(micros, 1_000_000L) * 1000);
    return "timestamp '" + i + "'";
  }

  private static String quoted(byte[] b) {
    return plain(b) ? "'" + new String(b, StandardCharsets.UTF_8).replace("'", "''") + "'" : hex(b);
  }

  private static String hex(byte[] b) {
    StringBuilder out = new StringBuilder("x'");
    for (byte x : b) {
      out.append(Character.forDigit(x >> 4 & 15, 16)).append(Character.forDigit(x & 15, 16));
    }
    return out.append("'").toString();
  }
}
