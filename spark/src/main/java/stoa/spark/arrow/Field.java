package stoa.spark.arrow;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** A field of an Arrow schema. Serializable: executors compare what comes with what was planned. */
public final class Field implements Serializable {
  private static final long serialVersionUID = 1;

  /** The types of Arrow, by their numbers in the format. */
  public enum Kind {
    NONE, NULL, INT, FLOAT, BINARY, UTF8, BOOL, DECIMAL, DATE, TIME, TIMESTAMP, INTERVAL, LIST, STRUCT, UNION,
    FIXED_BINARY, FIXED_LIST, MAP, DURATION, LARGE_BINARY, LARGE_UTF8, LARGE_LIST, RUN_ENDS, BINARY_VIEW, UTF8_VIEW,
    LIST_VIEW, LARGE_LIST_VIEW
  }

  /** Units of time, by their numbers. */
  static final int SECOND = 0, MILLI = 1, MICRO = 2, NANO = 3;

  public final String name;
  public final boolean nullable;
  public final Kind kind;
  public final int bits; // of integers, floats, decimals, dates, times
  public final boolean signed;
  public final int precision;
  public final int scale;
  public final int unit;
  public final boolean zoned; // a timestamp with a time zone is an instant
  public final int width; // of what has a fixed size, in bytes or entries
  public final List<Field> children;
  final boolean dictionary;
  final long dictionaryId;
  final int indexBits;
  final boolean indexSigned;

  private Field(Flat f) {
    String n = f.string(0);
    name = n == null ? "" : n;
    nullable = f.byteAt(1, 0) != 0;
    int k = f.byteAt(2, 0);
    if (k <= 0 || k >= Kind.values().length) {
      throw new IllegalArgumentException("column " + name + " has a type of Arrow that is not known: " + k);
    }
    kind = Kind.values()[k];
    Flat t = f.table(3);
    bits = bitsOf(kind, t);
    signed = kind == Kind.INT && t.byteAt(1, 0) != 0;
    precision = kind == Kind.DECIMAL ? t.intAt(0, 0) : 0;
    scale = kind == Kind.DECIMAL ? t.intAt(1, 0) : 0;
    unit = unitOf(kind, t);
    zoned = kind == Kind.TIMESTAMP && t.string(1) != null && !t.string(1).isEmpty();
    width = kind == Kind.FIXED_BINARY || kind == Kind.FIXED_LIST ? t.intAt(0, 0) : 0;
    Flat d = f.table(4);
    dictionary = d != null;
    dictionaryId = d == null ? 0 : d.longAt(0, 0);
    Flat index = d == null ? null : d.table(1);
    indexBits = index == null ? 32 : index.intAt(0, 0);
    indexSigned = index == null || index.byteAt(1, 0) != 0;
    children = all(f, 5);
  }

  private static int bitsOf(Kind kind, Flat t) {
    switch (kind) {
      case INT: return t.intAt(0, 0);
      case FLOAT: return 16 << t.shortAt(0, 0);
      case DECIMAL: return t.intAt(2, 128);
      case DATE: return t.shortAt(0, MILLI) == 0 ? 32 : 64;
      case TIME: return t.intAt(1, 32);
      default: return 0;
    }
  }

  private static int unitOf(Kind kind, Flat t) {
    switch (kind) {
      case TIME: case DURATION: return t.shortAt(0, MILLI);
      case TIMESTAMP: case INTERVAL: return t.shortAt(0, 0);
      default: return 0;
    }
  }

  private static List<Field> all(Flat f, int i) {
    List<Field> out = new ArrayList<>();
    for (int k = 0; k < f.length(i); k++) {
      out.add(new Field(f.entry(i, k)));
    }
    return Collections.unmodifiableList(new ArrayList<>(out));
  }

  /** The fields of a schema message. */
  static List<Field> ofSchema(Flat schema) {
    if (schema.shortAt(0, 0) != 0) {
      throw new IllegalArgumentException("the Arrow stream is big-endian");
    }
    return all(schema, 1);
  }

  /** Whether it counts nanoseconds, which Spark does not. */
  public boolean isNanos() {
    return unit == NANO;
  }

  /** The type in a few words, for messages. */
  public String typeName() {
    String s = kind.name().toLowerCase(java.util.Locale.ROOT);
    return bits > 0 ? s + bits : s;
  }
}
