// Fills a table with the rows of the benchmark. usage: java Load MASTER TABLE ROWS asc|shuffled
// The formula is that of data.go. Shuffled: the same rows, in an order in which every flush has keys from everywhere.
import java.math.*;
import java.util.*;
import org.apache.kudu.*;
import org.apache.kudu.ColumnSchema.*;
import org.apache.kudu.client.*;

public class Load {
  static long mix(long x) {
    x += 0x9E3779B97F4A7C15L;
    x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L;
    x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL;
    return x ^ (x >>> 31);
  }

  static ColumnSchema col(String name, Type t, boolean key, boolean nullable) {
    ColumnSchemaBuilder b = new ColumnSchemaBuilder(name, t).key(key).nullable(nullable);
    if (t == Type.DECIMAL) b.typeAttributes(new ColumnTypeAttributes.ColumnTypeAttributesBuilder().precision(18).scale(4).build());
    return b.build();
  }

  static void fill(PartialRow p, long r) {
    long h = mix(r);
    p.addLong(0, r * 3 + Long.remainderUnsigned(h, 3));
    p.addLong(1, 1_700_000_000_000_000L + r * 1000 + Long.remainderUnsigned(h >>> 3, 997));
    p.addString(2, "host-" + (h >>> 8) % 200 + ".example.org");
    if ((h & 15) == 0) p.setNull(3);
    else p.addString(3, "metric." + (h >>> 16) % 50);
    if ((h & 7) == 1) p.setNull(4);
    else p.addDouble(4, (h >> 20) / 65536.0);
    p.addInt(5, (int) (r / 100 % 7));
    if ((h & 31) == 2) p.setNull(6);
    else p.addBoolean(6, (r / 64 & 1) == 1);
    if ((h & 63) == 3) p.setNull(7);
    else p.addDecimal(7, new BigDecimal(BigInteger.valueOf((h >> 12) % 1_000_000_000L), 4));
    if ((h & 3) == 0) p.setNull(8);
    else p.addString(8, "https://example.org/path/" + Long.toHexString(mix(h)) + "?q=" + r % 1000);
    p.addString(9, String.format("tag/%09d", r));
  }

  public static void main(String[] a) throws Exception {
    int rows = Integer.parseInt(a[2]);
    KuduClient client = new KuduClient.KuduClientBuilder(a[0]).defaultOperationTimeoutMs(120000).build();
    Schema sc = new Schema(List.of(col("id", Type.INT64, true, false), col("ts", Type.UNIXTIME_MICROS, false, false), col("host", Type.STRING, false, false),
        col("metric", Type.STRING, false, true), col("val", Type.DOUBLE, false, true), col("cnt", Type.INT32, false, false), col("flag", Type.BOOL, false, true),
        col("price", Type.DECIMAL, false, true), col("url", Type.STRING, false, true), col("tag", Type.STRING, false, false)));
    KuduTable t = client.createTable(a[1], sc, new CreateTableOptions().addHashPartitions(List.of("id"), 2).setRangePartitionColumns(List.of()).setNumReplicas(1)
        .setExtraConfigs(Map.of("kudu.table.disable_compaction", "true")));
    KuduSession ss = client.newSession();
    ss.setFlushMode(SessionConfiguration.FlushMode.AUTO_FLUSH_BACKGROUND);
    ss.setMutationBufferSpace(5000);
    long step = a[3].equals("asc") ? 1 : 611_953; // a prime that divides no number of rows of ours
    for (long i = 0; i < rows; i++) {
      Insert op = t.newInsert();
      fill(op.getRow(), i * step % rows);
      ss.apply(op);
    }
    ss.flush();
    if (ss.countPendingErrors() > 0) throw new RuntimeException(ss.getPendingErrors().getRowErrors()[0].toString());
    client.close();
  }
}
