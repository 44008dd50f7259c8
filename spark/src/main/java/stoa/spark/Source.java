package stoa.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What {@code spark.read.format("stoa")} finds. */
public final class Source implements TableProvider, DataSourceRegister {
  private Options opened;
  private StoaTable table;

  @Override public String shortName() {
    return "stoa";
  }

  private StoaTable open(Map<String, String> options) {
    Options o = new Options(options);
    if (table == null || !o.equals(opened)) {
      table = StoaTable.open(o);
      opened = o;
    }
    return table;
  }

  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return open(options.asCaseSensitiveMap()).schema();
  }

  /** True, so that a table can be written that is not there yet: its schema is that of the rows. */
  @Override public boolean supportsExternalMetadata() {
    return true;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    if (partitioning.length > 0) {
      throw new UnsupportedOperationException("stoa does not write directories by partition; stoa convert --partition-by does");
    }
    Options o = new Options(properties);
    if (table != null && o.equals(opened)) { // the schema was asked for
      return table;
    }
    return StoaTable.said(o, schema);
  }
}
