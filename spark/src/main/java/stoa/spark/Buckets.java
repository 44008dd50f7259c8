package stoa.spark;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * How a table spreads its rows over buckets: by the hash of a column. Spark knows it as a function of the catalog, and
 * takes tables for spread alike if their functions have one canonical name.
 */
final class Buckets implements ScalarFunction<Integer> {
  private static final long serialVersionUID = 1;
  private static final Pattern NAME = Pattern.compile("stoa_bucket_(spark|kudu_(\\d+))_(\\d+)");
  private static final int SEED = 42; // of Spark's hash

  private final String name;
  private final int count;
  private final DataType type;
  private final boolean kudu;
  private final long seed;

  private Buckets(Matcher m, DataType type) {
    name = m.group();
    kudu = m.group(2) != null;
    seed = kudu ? Long.parseLong(m.group(2)) : SEED;
    count = Integer.parseInt(m.group(3));
    this.type = type;
  }

  /** The buckets of a table; null: those of its hash, or of a column of this type, are not known here. */
  static Buckets of(String hash, int count, DataType type) {
    Matcher m = NAME.matcher("stoa_bucket_" + hash.replace(' ', '_') + "_" + count);
    return m.matches() && count > 0 && (bytes(type) > 0 || texts(type)) ? new Buckets(m, type) : null;
  }

  /** How many bytes the numbers of a type have inside; 0: they are no whole numbers. */
  private static int bytes(DataType t) {
    return t.equals(DataTypes.ByteType) ? 1 : t.equals(DataTypes.ShortType) ? 2
        : t.equals(DataTypes.IntegerType) || t.equals(DataTypes.DateType) ? 4
        : t.equals(DataTypes.LongType) || t.equals(DataTypes.TimestampType) ? 8 : 0;
  }

  private static boolean texts(DataType t) {
    return t.equals(DataTypes.StringType) || t.equals(DataTypes.BinaryType);
  }

  int count() {
    return count;
  }

  /** The bucket of the value in a row; -1 of a null that has none. */
  int of(InternalRow row, int k) {
    if (row.isNullAt(k)) {
      return kudu ? -1 : Math.floorMod(SEED, count);
    }
    int n = bytes(type);
    if (n > 0) {
      long v = n == 1 ? row.getByte(k) : n == 2 ? row.getShort(k) : n == 4 ? row.getInt(k) : row.getLong(k);
      return kudu ? kudu(key(v, n))
          : Math.floorMod(n < 8 ? Murmur3_x86_32.hashInt((int) v, SEED) : Murmur3_x86_32.hashLong(v, SEED), count);
    }
    UTF8String s = type.equals(DataTypes.StringType) ? row.getUTF8String(k) : UTF8String.fromBytes(row.getBinary(k));
    return kudu ? kudu(s.getBytes()) : Math.floorMod(
        Murmur3_x86_32.hashUnsafeBytes(s.getBaseObject(), s.getBaseOffset(), s.numBytes(), SEED), count);
  }

  /** A number as Kudu has it in keys: its highest byte first, and negative ones before all others. */
  private static byte[] key(long v, int n) {
    byte[] out = new byte[n];
    for (int i = 0; i < n; i++) {
      out[i] = (byte) (v >> 8 * (n - 1 - i));
    }
    out[0] ^= (byte) 0x80;
    return out;
  }

  /** The bucket by MurmurHash64A. */
  private int kudu(byte[] b) {
    long m = 0xc6a4a7935bd1e995L;
    long h = seed ^ b.length * m;
    for (int i = 0; i < b.length; i += 8) {
      long k = 0;
      for (int j = Math.min(b.length, i + 8) - 1; j >= i; j--) {
        k = k << 8 | b[j] & 0xff;
      }
      if (i + 8 <= b.length) {
        k *= m;
        k = (k ^ k >>> 47) * m;
      }
      h = (h ^ k) * m;
    }
    h = (h ^ h >>> 47) * m;
    return (int) Long.remainderUnsigned(h ^ h >>> 47, count);
  }

  @Override public DataType[] inputTypes() {
    return new DataType[] {type};
  }

  @Override public DataType resultType() {
    return DataTypes.IntegerType;
  }

  @Override public boolean isResultNullable() {
    return false;
  }

  @Override public String name() {
    return name;
  }

  @Override public String canonicalName() {
    return name + "(" + type.catalogString() + ")";
  }

  @Override public Integer produceResult(InternalRow input) {
    return of(input, 0);
  }

  /** The function of that name, of any type; null: there is none. */
  static UnboundFunction named(String name) {
    Matcher m = NAME.matcher(name);
    if (!m.matches()) {
      return null;
    }
    String hash = m.group(1).replace('_', ' ');
    int count = Integer.parseInt(m.group(3));
    return new UnboundFunction() {
      @Override public BoundFunction bind(StructType input) {
        Buckets b = input.size() == 1 ? of(hash, count, input.fields()[0].dataType()) : null;
        if (b == null) {
          throw new UnsupportedOperationException(name + " of " + input.catalogString());
        }
        return b;
      }

      @Override public String description() {
        return name + "(value): the bucket of a value, from 0";
      }

      @Override public String name() {
        return name;
      }
    };
  }
}
