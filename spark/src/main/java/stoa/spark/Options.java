package stoa.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** What a read asks for: the options of stoa's verbs under their names, and a few of our own. */
final class Options implements Serializable {
  private static final long serialVersionUID = 1;

  /** Flags that say what the source is, and how it is opened. They end up in the splits. */
  private static final List<String> SOURCE = Arrays.asList("at", "from", "schema", "max-page", "max-metadata",
      "max-fields", "max-depth", "max-requests", "tablet", "wal-dir", "data-dirs", "meta-dir", "encryption-key",
      "segment", "segments", "bucket", "carbon-properties", "key-file", "memory");
  private static final List<String> SWITCHES = Arrays.asList("partial", "no-verify", "no-wal", "live",
      "allow-external");
  private static final Set<String> OURS = new HashSet<>(Arrays.asList("path", "paths", "source-opt", "command",
      "target-size", "damaged", "parallel", "nanoseconds", "columns", "pushdown", "bucketed", "ordered",
      "since", "changes", "to", "opt", "partition"));
  /** What Spark itself adds to the properties of a table. */
  private static final Set<String> SPARKS = new HashSet<>(Arrays.asList("provider", "location", "owner", "external",
      "comment", "is_managed_location", "transient_lastddltime", "table_type", "collation"));

  private final Map<String, String> all = new TreeMap<>();

  Options(Map<String, String> given) {
    add(given);
  }

  private void add(Map<String, String> given) {
    for (Map.Entry<String, String> e : given.entrySet()) {
      String k = e.getKey().toLowerCase(Locale.ROOT);
      if (SPARKS.contains(k) || k.startsWith("option.")) {
        continue;
      }
      if (!SOURCE.contains(k) && !SWITCHES.contains(k) && !OURS.contains(k)) {
        throw new IllegalArgumentException("stoa has no option " + e.getKey() + "; there are "
            + names(SOURCE) + ", " + names(SWITCHES) + ", " + names(OURS));
      }
      all.put(k, e.getValue());
    }
    choice("damaged", "fail", "fail", "skip-rows", "null-cells");
    choice("nanoseconds", "fail", "fail", "truncate");
    for (String k : SWITCHES) {
      choice(k, "false", "true", "false");
    }
    choice("pushdown", "true", "true", "false");
    choice("bucketed", "false", "true", "false");
    choice("ordered", "false", "true", "false");
    choice("changes", "fail", "fail", "ignore");
  }

  private static String names(Iterable<String> list) {
    List<String> out = new ArrayList<>();
    list.forEach(out::add);
    Collections.sort(out);
    return String.join(", ", out);
  }

  private String choice(String key, String absent, String... values) {
    String v = get(key, absent);
    if (!Arrays.asList(values).contains(v)) {
      throw new IllegalArgumentException("option " + key + " is " + String.join(" or ", values) + ", not " + v);
    }
    return v;
  }

  /** These, and others that win. */
  Options with(Map<String, String> more) {
    Options o = new Options(all);
    o.add(more);
    return o;
  }

  String get(String key, String absent) {
    return all.getOrDefault(key, absent);
  }

  boolean truncates() {
    return get("nanoseconds", "fail").equals("truncate");
  }

  boolean pushes() {
    return get("pushdown", "true").equals("true");
  }

  /** Whether Spark is told of buckets, and bucket is read apart from bucket. */
  boolean bucketed() {
    return get("bucketed", "false").equals("true");
  }

  /** Whether Spark is told of the order of rows, if it can be, and each split is read in it. */
  boolean ordered() {
    return Order.reported() && get("ordered", "false").equals("true");
  }

  /** Whether an option of streams is given. */
  boolean streams() {
    return all.containsKey("since") || all.containsKey("changes");
  }

  /** Whether losses, and tables that are known to be incomplete, were asked for. */
  boolean takesLess() {
    return !get("damaged", "fail").equals("fail") || get("partial", "false").equals("true");
  }

  /** The places that are read. */
  List<String> paths() {
    String several = all.get("paths");
    List<String> out = new ArrayList<>();
    if (all.get("path") != null) {
      out.add(all.get("path"));
    }
    if (several != null) {
      try {
        out.addAll(Arrays.asList(new ObjectMapper().readValue(several, String[].class)));
      } catch (IOException e) {
        throw new IllegalArgumentException("option paths is no list of texts: " + several, e);
      }
    }
    if (out.isEmpty()) {
      throw new IllegalArgumentException("stoa has to be told what to read: load(\"PLACE\") or load(\"PLACE#TABLE\")");
    }
    return out;
  }

  /** The one place that is written. */
  String target() {
    List<String> all = paths();
    if (all.size() != 1) {
      throw new IllegalArgumentException("one place can be written at a time, not " + all);
    }
    return all.get(0);
  }

  /** The verb that loads rows. */
  List<String> load() {
    return new ArrayList<>(Arrays.asList("load", "-q", "--no-progress"));
  }

  /** The verb that stages an Arrow stream from its standard input for a job; the task and the attempt come in before "--". */
  List<String> stage(String job, boolean overwrites) {
    List<String> out = load();
    out.add("--stage=" + job);
    out.add("--from=arrow");
    if (all.containsKey("to")) {
      out.add("--to=" + all.get("to"));
    }
    if (all.containsKey("partition")) {
      out.add("--partition=" + all.get("partition"));
    }
    for (String kv : get("opt", "").split(",")) {
      if (!kv.isEmpty()) {
        out.add("--opt=" + kv);
      }
    }
    if (overwrites) {
      out.add("--overwrite");
    }
    out.addAll(Arrays.asList("--", target(), "-"));
    return out;
  }

  /** A verb with the flags of the source. */
  List<String> verb(String name) {
    List<String> out = new ArrayList<>(Arrays.asList(name, "-q", "--no-progress"));
    for (String k : SOURCE) {
      if (all.containsKey(k)) {
        out.add("--" + k + "=" + all.get(k));
      }
    }
    for (String k : SWITCHES) {
      if (get(k, "false").equals("true")) {
        out.add("--" + k);
      }
    }
    for (String kv : get("source-opt", "").split(",")) {
      if (!kv.isEmpty()) {
        out.add("--source-opt=" + kv);
      }
    }
    return out;
  }

  /** The verb that reads a split from its standard input. */
  List<String> scan() {
    List<String> out = new ArrayList<>(Arrays.asList("scan", "--split=-", "--format=arrow", "--no-progress", "--work",
        "--parallel=" + get("parallel", "1"), "--damaged=" + get("damaged", "fail")));
    if (!takesLess()) { // else what is lost is said, for the log
      out.add("-q");
    }
    if (all.containsKey("memory")) {
      out.add("--memory=" + all.get("memory"));
    }
    return out;
  }

  @Override public boolean equals(Object o) {
    return o instanceof Options && all.equals(((Options) o).all);
  }

  @Override public int hashCode() {
    return all.hashCode();
  }
}
