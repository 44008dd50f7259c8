package peer;

import java.math.BigInteger;
import java.util.HexFormat;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.*;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;

/**
 * Cells in the form of formattest.Plain: lists and structs as arrays, maps as arrays of pairs, text as text, other bytes and floating-point numbers (their bytes,
 * the least significant first) in hexadecimal, all other numbers as decimal text, times in nanoseconds.
 */
class Cells {
  static void cell(StringBuilder s, Group g, int c) {
    Type t = g.getType().getType(c);
    int n = g.getFieldRepetitionCount(c);
    if (t.isRepetition(Type.Repetition.REPEATED)) {
      s.append('[');
      for (int i = 0; i < n; i++) {
        if (i > 0) s.append(',');
        value(s, g, c, i);
      }
      s.append(']');
    } else if (n == 0) {
      s.append("null");
    } else {
      value(s, g, c, 0);
    }
  }

  static void value(StringBuilder s, Group g, int c, int i) {
    Type t = g.getType().getType(c);
    if (t.isPrimitive()) {
      primitive(s, t.asPrimitiveType(), g, c, i);
      return;
    }
    Group v = g.getGroup(c, i);
    LogicalTypeAnnotation a = t.getLogicalTypeAnnotation();
    if (a instanceof ListLogicalTypeAnnotation) list(s, t, v);
    else if (a instanceof MapLogicalTypeAnnotation) cell(s, v, 0);
    else struct(s, v);
  }

  static void struct(StringBuilder s, Group v) {
    s.append('[');
    if (v.getType().getFieldCount() == 1 && v.getType().getFieldName(0).equals("stoa_no_fields")) { // no fields
      s.append(']');
      return;
    }
    for (int k = 0; k < v.getType().getFieldCount(); k++) {
      if (k > 0) s.append(',');
      cell(s, v, k);
    }
    s.append(']');
  }

  /** Items of a list: of three levels, or by the rules for older forms. */
  static void list(StringBuilder s, Type list, Group v) {
    Type mid = v.getType().getType(0);
    boolean three = !mid.isPrimitive() && oneThatIsNotRepeated(mid.asGroupType()) && !mid.getName().equals("array") && !mid.getName().equals(list.getName() + "_tuple");
    s.append('[');
    for (int i = 0; i < v.getFieldRepetitionCount(0); i++) {
      if (i > 0) s.append(',');
      if (three) cell(s, v.getGroup(0, i), 0);
      else value(s, v, 0, i);
    }
    s.append(']');
  }

  static boolean oneThatIsNotRepeated(GroupType g) {
    return g.getFieldCount() == 1 && !g.getType(0).isRepetition(Type.Repetition.REPEATED);
  }

  static boolean half(Type t) {
    return t.getLogicalTypeAnnotation() instanceof Float16LogicalTypeAnnotation;
  }

  static void primitive(StringBuilder s, PrimitiveType t, Group g, int c, int i) {
    switch (t.getPrimitiveTypeName()) {
      case BOOLEAN -> s.append(g.getBoolean(c, i));
      case INT32 -> number(s, t, g.getInteger(c, i));
      case INT64 -> number(s, t, g.getLong(c, i));
      case FLOAT -> bits(s, Float.floatToRawIntBits(g.getFloat(c, i)), 4);
      case DOUBLE -> bits(s, Double.doubleToRawLongBits(g.getDouble(c, i)), 8);
      case INT96 -> bytes(s, t, g.getInt96(c, i));
      default -> bytes(s, t, g.getBinary(c, i));
    }
  }

  static void number(StringBuilder s, PrimitiveType t, long v) {
    BigInteger n = BigInteger.valueOf(v);
    LogicalTypeAnnotation a = t.getLogicalTypeAnnotation();
    if (a instanceof IntLogicalTypeAnnotation x && !x.isSigned() && v < 0) n = n.add(BigInteger.ONE.shiftLeft(t.getPrimitiveTypeName() == PrimitiveType.PrimitiveTypeName.INT32 ? 32 : 64));
    if (a instanceof TimeLogicalTypeAnnotation x) n = n.multiply(nanos(x.getUnit()));
    if (a instanceof TimestampLogicalTypeAnnotation x) n = n.multiply(nanos(x.getUnit()));
    s.append('"').append(n).append('"');
  }

  static BigInteger nanos(LogicalTypeAnnotation.TimeUnit u) {
    return BigInteger.valueOf(switch (u) { case MILLIS -> 1_000_000; case MICROS -> 1000; case NANOS -> 1; });
  }

  static void bits(StringBuilder s, long v, int n) {
    s.append('"');
    for (int k = 0; k < n; k++) s.append(HexFormat.of().toHexDigits((byte) (v >>> 8 * k)));
    s.append('"');
  }

  static void bytes(StringBuilder s, PrimitiveType t, Binary b) {
    LogicalTypeAnnotation a = t.getLogicalTypeAnnotation();
    if (a instanceof DecimalLogicalTypeAnnotation) s.append('"').append(new BigInteger(b.getBytes())).append('"');
    else if (a instanceof StringLogicalTypeAnnotation || a instanceof JsonLogicalTypeAnnotation) text(s, b.toStringUsingUTF8());
    else s.append('"').append(HexFormat.of().formatHex(b.getBytes())).append('"');
  }

  static void text(StringBuilder s, String v) {
    s.append('"');
    for (int i = 0; i < v.length(); i++) {
      char c = v.charAt(i);
      if (c == '"' || c == '\\' || c < ' ' || c > 126) s.append(String.format("\\u%04x", (int) c));
      else s.append(c);
    }
    s.append('"');
  }
}
