package stoa.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.read.SupportsReportOrdering;
import org.apache.spark.sql.types.StructType;

/** A scan that tells Spark in which order the rows of each split are. Loaded by Spark 3.4 and later only. */
final class OrderedScan extends TableScan implements SupportsReportOrdering {
  OrderedScan(StoaTable table, Options options, StructType required, String where, int limit) {
    super(table, options, required, where, limit);
  }

  @Override public SortOrder[] outputOrdering() {
    List<SortOrder> out = new ArrayList<>();
    for (int i : order()) {
      out.add(Expressions.sort(reference(i), SortDirection.ASCENDING, NullOrdering.NULLS_FIRST));
    }
    return out.toArray(new SortOrder[0]);
  }
}
