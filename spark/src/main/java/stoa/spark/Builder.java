package stoa.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.StructType;

/** Takes from Spark what the scan can do itself. */
final class Builder implements SupportsPushDownV2Filters, SupportsPushDownRequiredColumns, SupportsPushDownLimit,
    SupportsPushDownAggregates {
  /** Formats whose files say how many rows they have. In the others somebody has to read them. */
  private static final List<String> COUNTED = Arrays.asList("cfile", "kudu", "carbon", "redfile", "trevni",
      "trevni-avro", "parquet", "iceberg", "delta", "kudu-backup");

  private final StoaTable table;
  private final Options options;
  private final Predicates predicates;
  private StructType required;
  private Predicate[] pushed = {};
  private String where = "";
  private int limit = -1;
  private boolean counts;
  private Aggregation asked; // the one that known is about
  private KnownScan known; // null: not all of it is known

  Builder(StoaTable table, Options options) {
    this.table = table;
    this.options = options;
    predicates = new Predicates(table.fields);
    required = table.schema();
  }

  @Override public Predicate[] pushPredicates(Predicate[] all) {
    List<Predicate> taken = new ArrayList<>();
    List<Predicate> rest = new ArrayList<>();
    List<String> texts = new ArrayList<>();
    for (Predicate p : all) {
      String text = options.pushes() && prints(p) ? predicates.text(p) : null;
      if (text != null && predicates.fits(texts, text)) {
        texts.add(text);
        taken.add(p);
      } else {
        rest.add(p);
      }
    }
    pushed = taken.toArray(new Predicate[0]);
    where = String.join(" and ", texts);
    return rest.toArray(new Predicate[0]);
  }

  /** Whether Spark can print what it pushes: 4.2.0 fails on a null among binary values (LiteralValue.toString). */
  private static boolean prints(Expression e) {
    if (e instanceof Literal && ((Literal<?>) e).value() == null && ((Literal<?>) e).dataType() instanceof BinaryType) {
      return false;
    }
    for (Expression c : e.children()) {
      if (!prints(c)) {
        return false;
      }
    }
    return true;
  }

  @Override public Predicate[] pushedPredicates() {
    return pushed;
  }

  @Override public void pruneColumns(StructType wanted) {
    required = wanted;
  }

  @Override public boolean pushLimit(int n) {
    limit = n;
    return true;
  }

  private boolean countsAll(Aggregation a) {
    AggregateFunc[] f = a.aggregateExpressions();
    return options.pushes() && where.isEmpty() && f.length == 1 && f[0] instanceof CountStar
        && a.groupByExpressions().length == 0 && !options.takesLess();
  }

  private boolean knows(Aggregation a) {
    if (asked != a) {
      known = KnownScan.of(table, options, where, a);
      asked = a;
    }
    return known != null;
  }

  @Override public boolean supportCompletePushDown(Aggregation a) {
    return !options.streams() && (knows(a)
        || countsAll(a) && COUNTED.contains(new Plan(table, options, new ArrayList<>(), "").format()));
  }

  @Override public boolean pushAggregation(Aggregation a) {
    counts = supportCompletePushDown(a);
    return counts;
  }

  @Override public Scan build() {
    if (counts && known != null) {
      return known;
    }
    if (counts) {
      return new CountScan(table, options);
    }
    if (options.ordered()) {
      return new OrderedScan(table, options, required, where, limit);
    }
    return new TableScan(table, options, required, where, limit);
  }
}
