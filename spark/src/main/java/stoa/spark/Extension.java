package stoa.spark;

import org.apache.spark.SparkEnv;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import scala.runtime.BoxedUnit;

/**
 * Found by Spark wherever the jar is: names the catalog {@code stoa}, whose tables are places, so that {@code select
 * … from stoa.`dir#table`} needs no setting. A catalog of that name that somebody has set stays.
 */
public final class Extension implements SparkSessionExtensionsProvider {
  @Override public BoxedUnit apply(SparkSessionExtensions extensions) {
    SparkEnv env = SparkEnv.get();
    if (env != null) {
      env.conf().setIfMissing("spark.sql.catalog.stoa", "stoa.Catalog");
    }
    return BoxedUnit.UNIT;
  }
}
