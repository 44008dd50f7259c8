package stoa.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/**
 * The loads of a CarbonData table, each once, as a stream. An offset is a segment, whose rows and those of all segments
 * with lower numbers have been read, and what was deleted by then. Compaction writes segments with numbers such as 0.1,
 * which are never read; rows of a segment that was compacted are read from its own files, as long as they are there.
 */
final class SegmentStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String READ = "(Success|(Load )?Partial Success|Marked for Update|Compacted).*"; // states
  private static final Pattern MERGED = Pattern.compile(", merged into ([0-9]+)(,|$)");

  private final StoaTable table;
  private final Options options;
  private final List<String> columns;
  private final String where;
  private final PartitionReaderFactory readers;
  private final long since;
  private State available; // what Trigger.AvailableNow reads; null: all that comes

  SegmentStream(StoaTable table, Options options, List<String> columns, String where, PartitionReaderFactory readers) {
    this.table = table;
    this.options = options;
    this.columns = columns;
    this.where = where;
    this.readers = readers;
    for (String k : new String[] {"segment", "segments", "at", "bucketed"}) {
      if (options.get(k, null) != null) {
        throw new IllegalArgumentException("a stream chooses the segments itself: option " + k + " cannot be given");
      }
    }
    try {
      since = Long.parseLong(options.get("since", "-1"));
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("option since is the number of a segment, not " + options.get("since", ""), e);
    }
    now();
  }

  /** How far the stream is, as JSON. */
  static final class Reached extends Offset {
    final long segment;
    final String id; // of the table
    final String updates; // names the state of deleted rows
    final TreeSet<Long> deleted = new TreeSet<>(); // segments

    Reached(long segment, String id, String updates) {
      this.segment = segment;
      this.id = id;
      this.updates = updates;
    }

    @Override public String json() {
      ObjectNode n = JSON.createObjectNode().put("segment", segment).put("table", id).put("updates", updates);
      deleted.forEach(n.putArray("deleted")::add);
      return n.toString();
    }
  }

  /** A table as its status has it now. */
  private static final class State {
    final TreeMap<Long, String> loads = new TreeMap<>(); // segments that loads wrote, and their states
    final TreeSet<Long> merged = new TreeSet<>(); // those that hold what CarbonData's streams wrote before
    String id = "";
    String updates = "";

    boolean deleted(long segment) {
      return loads.get(segment).startsWith("Marked for Delete");
    }

    Reached at(long segment) {
      Reached out = new Reached(segment, id, updates);
      for (long n : loads.keySet()) {
        if (deleted(n)) {
          out.deleted.add(n);
        }
      }
      return out;
    }
  }

  private State now() {
    List<String> args = options.verb("meta");
    args.add("--format=json");
    args.add("--");
    args.addAll(options.paths());
    Command.Answer a = table.command.run(args);
    StoaTable.check(a, options, "the segments of " + table.name());
    State out = new State();
    try {
      JsonNode all = JSON.readTree(a.text());
      JsonNode facts = all.path(0).path("facts");
      if (all.size() != 1 || !facts.path("format").asText().equals("CarbonData table")) {
        throw new IllegalArgumentException(table.name() + ": only a CarbonData table can be read as a stream");
      }
      for (Iterator<Map.Entry<String, JsonNode>> i = facts.fields(); i.hasNext();) {
        Map.Entry<String, JsonNode> e = i.next();
        if (e.getKey().matches("segment\\.[0-9]+")) {
          out.loads.put(Long.parseLong(e.getKey().substring(8)), e.getValue().asText());
          Matcher m = MERGED.matcher(e.getValue().asText());
          if (m.find()) {
            out.merged.add(Long.parseLong(m.group(1)));
          }
        }
      }
      out.id = facts.path("table_id").asText("");
      out.updates = facts.path("update_status").asText("");
      return out;
    } catch (IOException e) {
      throw new StoaException(a.status, "the segments of " + table.name() + ": " + e.getMessage(), e);
    }
  }

  @Override public Offset initialOffset() {
    return now().at(since);
  }

  @Override public Offset latestOffset() {
    throw new UnsupportedOperationException("it is asked with the offset before");
  }

  @Override public void prepareForTriggerAvailableNow() {
    available = now();
  }

  /** The last load before one that has not ended. */
  @Override public Offset latestOffset(Offset start, ReadLimit limit) {
    State s = available == null ? now() : available;
    long last = ((Reached) start).segment;
    for (Map.Entry<Long, String> e : s.loads.entrySet()) {
      if (e.getValue().matches("Streaming.*|.*Progress.*")) {
        break;
      }
      last = Math.max(last, e.getKey());
    }
    return s.at(last);
  }

  @Override public Offset deserializeOffset(String json) {
    try {
      JsonNode n = JSON.readTree(json);
      Reached out = new Reached(n.path("segment").asLong(-1), n.path("table").asText(), n.path("updates").asText());
      n.path("deleted").forEach(d -> out.deleted.add(d.asLong()));
      return out;
    } catch (IOException e) {
      throw new IllegalArgumentException("no offset of a stream of stoa: " + json, e);
    }
  }

  @Override public InputPartition[] planInputPartitions(Offset from, Offset to) {
    Reached start = (Reached) from;
    Reached end = (Reached) to;
    State s = now();
    check(start, end, s);
    List<String> some = new ArrayList<>();
    for (long n : s.loads.subMap(start.segment, false, Math.max(start.segment, end.segment), true).keySet()) {
      if (s.loads.get(n).matches(READ) && !s.merged.contains(n)) {
        some.add(Long.toString(n));
      }
    }
    if (some.isEmpty()) {
      return new InputPartition[0];
    }
    Options of = options.with(Collections.singletonMap("segments", String.join(",", some)));
    return new Plan(table, of, columns, where).splits().toArray(new InputPartition[0]);
  }

  /** Fails if rows that the stream has given out are no longer there, or if there may be rows that it cannot find. */
  private void check(Reached start, Reached end, State s) {
    if (!start.id.equals(s.id)) {
      throw new IllegalStateException(table.name() + " is another table than the one that this stream began with: "
          + "a new stream, with a checkpoint of its own, reads it");
    }
    TreeSet<Long> missing = new TreeSet<>();
    for (long n = start.segment + 1; n <= end.segment; n++) {
      if (!s.loads.containsKey(n)) {
        missing.add(n);
      }
    }
    if (!missing.isEmpty()) {
      refuse("segments " + missing + " of " + table.name() + " were removed before the stream came to them. If they "
          + "were compacted, their rows are in another segment, which only a batch reads");
    }
    TreeSet<Long> gone = new TreeSet<>(s.at(start.segment).deleted.headSet(start.segment, true));
    gone.removeAll(start.deleted);
    if (start.segment >= 0 && (!gone.isEmpty() || !s.updates.equals(start.updates))) {
      refuse((gone.isEmpty() ? "rows" : "segments " + gone) + " of " + table.name() + " were deleted or updated after "
          + "the stream had come to segment " + start.segment + ": a stream only adds");
    }
  }

  private void refuse(String why) {
    if (!options.get("changes", "fail").equals("ignore")) {
      throw new IllegalStateException(why + ". .option(\"changes\", \"ignore\") goes on all the same");
    }
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return readers;
  }

  @Override public void commit(Offset end) {}

  @Override public void stop() {}
}
