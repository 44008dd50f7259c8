package stoa.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkEnv;

/** The splits of a scan, planned when somebody asks for them. */
final class Plan {
  private static final int VERSION = 1;
  private static final long LARGE = 128L << 20;
  private static final long SMALL = 4L << 20;

  private final StoaTable table;
  private final Options options;
  private final List<String> columns;
  private final String where;
  private List<Split> splits;
  private String format = "";
  private JsonNode head = MissingNode.getInstance();

  Plan(StoaTable table, Options options, List<String> columns, String where) {
    this.table = table;
    this.options = options;
    this.columns = columns;
    this.where = where;
  }

  /** The format of what the first split reads; none if there are no splits. */
  String format() {
    splits();
    return format;
  }

  List<Split> splits() {
    if (splits == null) {
      String said = options.get("target-size", null);
      splits = planned(said == null ? LARGE + "B" : said);
      int wanted = parallelism();
      if (said == null && splits.size() < wanted && bytes() > SMALL) {
        splits = planned(Math.max(SMALL, bytes() / wanted + 1) + "B");
      }
    }
    return splits;
  }

  /** The one column by whose hash the rows are in buckets, if each split has rows of one; null. */
  String bucketColumn() {
    for (Split s : splits()) {
      if (s.bucket < 0 || s.bucket >= bucketCount()) {
        return null;
      }
    }
    JsonNode by = head.path("buckets").path("by");
    return options.bucketed() && by.size() == 1 ? by.path(0).asText() : null;
  }

  int bucketCount() {
    return head.path("buckets").path("count").asInt(0);
  }

  String bucketHash() {
    return head.path("buckets").path("hash").asText("");
  }

  /** The same scan in as few splits as there can be: for what they know. */
  List<Split> large() {
    return planned((1L << 50) + "B");
  }

  /** How many tasks run side by side, as far as the driver knows. */
  private static int parallelism() {
    try {
      return org.apache.spark.SparkContext.getOrCreate().defaultParallelism();
    } catch (RuntimeException e) {
      return SparkEnv.get() == null ? 1 : 2;
    }
  }

  long bytes() {
    long n = 0;
    for (Split s : splits()) {
      n += s.bytes;
    }
    return n;
  }

  /** Rows before any filter; -1: not known. */
  long rows() {
    long n = 0;
    for (Split s : splits()) {
      if (s.rows < 0) {
        return -1;
      }
      n += s.rows;
    }
    return n;
  }

  private List<Split> planned(String size) {
    List<String> args = options.verb("plan");
    args.add("--unordered"); // rows of Spark have no order
    args.add("--target-size=" + size);
    if (options.bucketed()) {
      args.add("--by-partition");
    }
    if (!columns.isEmpty()) {
      args.add("--columns=" + String.join(",", columns));
    }
    if (!where.isEmpty()) {
      args.add("--where=" + where);
    }
    args.add("--");
    args.addAll(options.paths());
    Command.Answer a = table.command.run(args);
    StoaTable.check(a, options, "a plan of " + options.paths());
    List<Split> out = new ArrayList<>();
    try {
      return read(a.text(), out);
    } catch (IOException e) {
      throw new StoaException(a.status, "the plan of " + options.paths() + ": " + e.getMessage(), e);
    }
  }

  private List<Split> read(String text, List<Split> out) throws IOException {
    ObjectMapper json = new ObjectMapper();
    for (String line : text.split("\n")) {
      JsonNode n = json.readTree(line);
      if (n.has("stoa_plan")) { // the first line, with the schema
        head = n;
        continue;
      }
      if (n.path("end").asBoolean(false)) {
        if (n.path("splits").asInt(-1) != out.size()) {
          throw new IOException("expected " + n.path("splits") + " splits, found " + out.size());
        }
        return out;
      }
      if (n.path("stoa_split").asInt(-1) != VERSION) {
        throw new IOException("splits of version " + n.path("stoa_split") + ", this jar knows version " + VERSION);
      }
      format = n.path("sources").path(0).path("format").asText("");
      out.add(new Split(line, n.path("rows").asLong(-1), n.path("bytes").asLong(0),
          n.path("bucket").asInt(-1)));
    }
    throw new IOException("it was cut off: there is no last line");
  }
}
