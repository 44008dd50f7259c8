package stoa.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.SparkEnv;

/** The splits of a scan, planned when somebody asks for them. */
final class Plan {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int VERSION = 1;
  private static final long LARGE = 128L << 20;
  private static final long SMALL = 4L << 20;
  private static final String WHOLE = (1L << 50) + "B"; // no split is divided for its size

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
      if (options.ordered()) {
        splits = planned(said == null ? WHOLE : said, true);
        if (ofTablets()) {
          return splits;
        }
      }
      splits = planned(said == null ? LARGE + "B" : said, false);
      int wanted = parallelism();
      if (said == null && splits.size() < wanted && bytes() > SMALL) {
        splits = planned(Math.max(SMALL, bytes() / wanted + 1) + "B", false);
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

  /**
   * The columns by which the rows of each split are in order: those of a Kudu table's primary key, by which a scan
   * merges the rows of a tablet. None if Spark may read several tablets of a bucket one after the other.
   */
  List<String> order() {
    Set<Integer> buckets = new HashSet<>();
    boolean single = true;
    for (Split s : splits()) {
      single = buckets.add(s.bucket) && single;
    }
    List<String> out = new ArrayList<>();
    for (boolean more = ofTablets() && (single || bucketColumn() == null); more;) {
      more = false;
      for (JsonNode f : head.path("schema").path("fields")) {
        if (f.path("metadata").path("stoa.key").asInt(0) == out.size() + 1) { // the position in the key
          out.add(f.path("name").asText());
          more = true;
        }
      }
    }
    return out;
  }

  private boolean ofTablets() {
    for (Split s : splits) {
      if (!s.tablet) {
        return false;
      }
    }
    return !splits.isEmpty();
  }

  /** Cuts a split into splits of one tablet each: the tablets' rows follow each other. */
  private static List<Split> byTablet(JsonNode all) {
    List<Split> out = new ArrayList<>();
    Map<String, ArrayNode> tablets = new LinkedHashMap<>();
    JsonNode source = all.path("sources").path(0);
    for (JsonNode piece : source.path("pieces")) {
      tablets.computeIfAbsent(piece.path("part").asText(), k -> JSON.createArrayNode()).add(piece);
    }
    for (ArrayNode pieces : tablets.values()) {
      long rows = 0;
      long bytes = 0;
      for (JsonNode piece : pieces) {
        long n = piece.path("count").asLong(-1);
        rows = rows < 0 || n < 0 ? -1 : rows + n;
        bytes += piece.path("bytes").asLong(0);
      }
      ObjectNode one = all.deepCopy();
      ((ObjectNode) one.path("sources").path(0)).set("pieces", pieces);
      out.add(new Split(one.put("rows", rows).put("bytes", bytes).toString(), rows, bytes, all.path("bucket").asInt(-1),
          true));
    }
    return out;
  }

  /** The same scan in as few splits as there can be: for what they know. */
  List<Split> large() {
    return planned(WHOLE, false);
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

  private List<Split> planned(String size, boolean ordered) {
    List<String> args = options.verb("plan");
    if (!ordered) {
      args.add("--unordered"); // rows of Spark have no order
    }
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
      return read(a.text(), ordered, out);
    } catch (IOException e) {
      throw new StoaException(a.status, "the plan of " + options.paths() + ": " + e.getMessage(), e);
    }
  }

  private List<Split> read(String text, boolean ordered, List<Split> out) throws IOException {
    int lines = 0;
    for (String line : text.split("\n")) {
      JsonNode n = JSON.readTree(line);
      if (n.has("stoa_plan")) { // the first line, with the schema
        head = n;
        continue;
      }
      if (n.path("end").asBoolean(false)) {
        if (n.path("splits").asInt(-1) != lines) {
          throw new IOException("expected " + n.path("splits") + " splits, found " + lines);
        }
        return out;
      }
      if (n.path("stoa_split").asInt(-1) != VERSION) {
        throw new IOException("splits of version " + n.path("stoa_split") + ", this jar knows version " + VERSION);
      }
      format = n.path("sources").path(0).path("format").asText("");
      lines++;
      if (ordered && n.path("sources").size() == 1 && format.equals("kudu")) {
        out.addAll(byTablet(n));
      } else {
        out.add(new Split(line, n.path("rows").asLong(-1), n.path("bytes").asLong(0), n.path("bucket").asInt(-1),
            false));
      }
    }
    throw new IOException("it was cut off: there is no last line");
  }
}
