package stoa.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import stoa.spark.arrow.Column;
import stoa.spark.arrow.Columns;
import stoa.spark.arrow.Field;

/**
 * How a column of Spark is made of those that scan writes. A struct of which some fields are wanted is put together
 * from these fields, which come as columns of their own. Where the struct is null they are null, but not the other way
 * round: so if the struct may be null, a field that may not be null is read along, as a witness, and if it has no such
 * field, it is read as a whole.
 */
final class Shape implements Serializable {
  private static final long serialVersionUID = 1;
  private final Field field;
  private final int column; // of the stream; -1: it is put together
  private final int witness; // a column that is null where the struct is; -1: it never is
  private final ArrayList<Shape> children = new ArrayList<>();

  private Shape(Field field, int column, int witness) {
    this.field = field;
    this.column = column;
    this.witness = witness;
  }

  /** The shape of a field of which Spark wants what is in a type; the columns that it takes are added to read. */
  static Shape of(Field f, DataType wanted, List<String> read) {
    return of(f, wanted, Predicates.name(f.name), read);
  }

  private static Shape of(Field f, DataType wanted, String path, List<String> read) {
    int begin = read.size();
    if (f.kind == Field.Kind.STRUCT && !f.children.isEmpty() && wanted instanceof StructType
        && !all(f, (StructType) wanted)) {
      Shape s = parts(f, (StructType) wanted, path, read);
      if (s != null) {
        return s;
      }
      read.subList(begin, read.size()).clear();
    }
    read.add(path);
    return new Shape(f, begin, -1);
  }

  /** Whether all of a struct's fields are wanted, whole. */
  private static boolean all(Field f, StructType wanted) {
    StructField[] w = wanted.fields();
    if (w.length != f.children.size()) {
      return false;
    }
    for (int i = 0; i < w.length; i++) {
      Field c = f.children.get(i);
      if (c.kind == Field.Kind.STRUCT && w[i].dataType() instanceof StructType
          && !all(c, (StructType) w[i].dataType())) {
        return false;
      }
    }
    return true;
  }

  private static Shape parts(Field f, StructType wanted, String path, List<String> read) {
    List<Shape> children = new ArrayList<>();
    for (StructField w : wanted.fields()) {
      Field c = child(f, w.name());
      if (c == null) {
        return null;
      }
      children.add(of(c, w.dataType(), path + "." + Predicates.name(c.name), read));
    }
    int witness = -1;
    if (f.nullable) {
      String leaf = required(f, path);
      if (leaf == null) {
        return null;
      }
      witness = read.indexOf(leaf);
      if (witness < 0) {
        witness = read.size();
        read.add(leaf);
      }
    }
    Shape s = new Shape(f, -1, witness);
    s.children.addAll(children);
    return s;
  }

  /** The one field of that name; null: there is none, or there are two. */
  private static Field child(Field f, String name) {
    Field found = null;
    for (Field c : f.children) {
      if (c.name.equals(name)) {
        if (found != null) {
          return null;
        }
        found = c;
      }
    }
    return found;
  }

  /** The path of a value that is there whenever the struct is; null: there is none. */
  private static String required(Field f, String path) {
    for (Field c : f.children) {
      if (!c.nullable && c.kind != Field.Kind.STRUCT && c.children.isEmpty() && c.kind != Field.Kind.NULL
          && child(f, c.name) != null) {
        return path + "." + Predicates.name(c.name);
      }
    }
    for (Field c : f.children) {
      String leaf = !c.nullable && c.kind == Field.Kind.STRUCT && child(f, c.name) != null
          ? required(c, path + "." + Predicates.name(c.name)) : null;
      if (leaf != null) {
        return leaf;
      }
    }
    return null;
  }

  /** The type of Spark. */
  DataType type(Columns made) {
    if (column >= 0) {
      return made.of(field).dataType();
    }
    StructField[] out = new StructField[children.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = children.get(i).named(made);
    }
    return DataTypes.createStructType(out);
  }

  StructField named(Columns made) {
    return DataTypes.createStructField(field.name, type(made), field.nullable);
  }

  /** The column, over those of the stream, whose types must be as planned. */
  Column over(Column[] stream, Columns made) {
    if (column < 0) {
      Column[] parts = new Column[children.size()];
      for (int i = 0; i < parts.length; i++) {
        parts[i] = children.get(i).over(stream, made);
      }
      return Columns.assembled(type(made), parts, witness < 0 ? null : stream[witness]);
    }
    DataType want = type(made);
    DataType got = column < stream.length ? stream[column].dataType() : DataTypes.NullType;
    if (!got.sameType(want)) {
      throw new IllegalStateException("column " + field.name + " was planned as " + want + ", and comes as " + got);
    }
    return stream[column];
  }
}
