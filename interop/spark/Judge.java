import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.streaming.DataStreamReader;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.apache.spark.sql.streaming.Trigger;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;

/**
 * Spark, asked through a pipe: Judge WORK MASTER [KEY=VALUE…]. Each line of standard input is a question in JSON, each
 * line of standard output its answer. A question has "sql", or "load" (a place) and "options"; "save" (a directory)
 * writes the rows as Parquet by Spark's own writer instead of answering with them, "write" (a place) by ours with the
 * options "how" and the mode "mode", in "tasks" tasks, "view" names them, "explain" asks
 * for the plan, "noop" reads them all; "conf" is set before, and "cancel" ends all jobs after so many seconds. "stream"
 * (a place) and "options" write a stream as Parquet "to" a directory, with a "checkpoint". A
 * question that fails is answered by {"error": …, "object": …, "offset": …}.
 */
public final class Judge {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] a) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    System.setOut(System.err);
    SparkSession.Builder b = SparkSession.builder().master(a[1]).appName("judge").config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", a[0] + "/warehouse").config("spark.local.dir", a[0])
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
        .config("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED");
    for (int i = 2; i < a.length; i++) {
      int eq = a[i].indexOf('=');
      b = b.config(a[i].substring(0, eq), a[i].substring(eq + 1));
    }
    SparkSession s = b.getOrCreate();
    s.sparkContext().setLogLevel(System.getProperty("judge.log", "OFF"));
    out.println(JSON.createObjectNode().put("version", s.version()));
    out.flush();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null;) {
      ObjectNode answer = JSON.createObjectNode();
      long begin = System.nanoTime();
      try {
        JsonNode q = JSON.readTree(line);
        Timer cancel = new Timer(true);
        if (q.has("cancel")) { // after so many seconds
          cancel.schedule(new TimerTask() {
            @Override public void run() {
              s.sparkContext().cancelAllJobs();
            }
          }, q.get("cancel").asLong() * 1000);
        }
        ask(s, q, answer);
        cancel.cancel();
      } catch (Throwable t) {
        failed(t, answer);
      }
      answer.put("seconds", (System.nanoTime() - begin) / 1e9);
      out.println(answer);
      out.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private static void ask(SparkSession s, JsonNode q, ObjectNode answer) {
    for (Iterator<Map.Entry<String, JsonNode>> i = q.path("conf").fields(); i.hasNext();) {
      Map.Entry<String, JsonNode> e = i.next();
      s.conf().set(e.getKey(), e.getValue().asText());
    }
    if (q.has("stream")) {
      stream(s, q);
      return;
    }
    Dataset<Row> d;
    if (q.has("sql")) {
      d = s.sql(q.get("sql").asText());
    } else if (q.has("load")) {
      DataFrameReader r = s.read().format(q.path("format").asText("stoa"));
      for (Iterator<Map.Entry<String, JsonNode>> i = q.path("options").fields(); i.hasNext();) {
        Map.Entry<String, JsonNode> e = i.next();
        r = r.option(e.getKey(), e.getValue().asText());
      }
      d = r.load(q.get("load").asText());
    } else {
      return;
    }
    answer.put("schema", d.schema().json());
    if (q.has("write")) {
      DataFrameWriter<Row> w = (q.has("tasks") ? d.repartition(q.get("tasks").asInt()) : d).write().format("stoa")
          .mode(q.path("mode").asText("append"));
      for (Iterator<Map.Entry<String, JsonNode>> i = q.path("how").fields(); i.hasNext();) {
        Map.Entry<String, JsonNode> e = i.next();
        w = w.option(e.getKey(), e.getValue().asText());
      }
      w.save(q.get("write").asText());
    } else if (q.has("view")) {
      d.createOrReplaceTempView(q.get("view").asText());
    } else if (q.has("save")) {
      storable(d).write().mode("overwrite").parquet(q.get("save").asText());
    } else if (q.path("explain").asBoolean()) {
      answer.put("plan", d.queryExecution().toString());
    } else if (q.path("noop").asBoolean()) {
      d.write().format("noop").mode("overwrite").save();
    } else {
      ArrayNode rows = answer.putArray("rows");
      for (Row row : d.collectAsList()) {
        rows.add(row.json());
      }
      ObjectNode metrics = answer.putObject("metrics");
      scala.collection.Iterator<SparkPlan> leaves = d.queryExecution().executedPlan().collectLeaves().iterator();
      while (leaves.hasNext()) {
        scala.collection.Iterator<Tuple2<String, SQLMetric>> i = leaves.next().metrics().iterator();
        while (i.hasNext()) {
          Tuple2<String, SQLMetric> m = i.next();
          metrics.put(m._1(), metrics.path(m._1()).asLong() + m._2().value());
        }
      }
    }
  }

  /** Reads a stream to its end, or, with "every", every so many milliseconds until it fails, into files of Parquet. */
  private static void stream(SparkSession s, JsonNode q) {
    DataStreamReader r = s.readStream().format("stoa");
    for (Iterator<Map.Entry<String, JsonNode>> i = q.path("options").fields(); i.hasNext();) {
      Map.Entry<String, JsonNode> e = i.next();
      r = r.option(e.getKey(), e.getValue().asText());
    }
    try {
      r.load(q.get("stream").asText()).writeStream().format("parquet").option("path", q.get("to").asText())
          .option("checkpointLocation", q.get("checkpoint").asText())
          .trigger(q.has("every") ? Trigger.ProcessingTime(q.get("every").asLong()) : Trigger.AvailableNow())
          .start().awaitTermination();
    } catch (StreamingQueryException | TimeoutException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The rows with columns of nothing but null as strings: Parquet has no such type. */
  private static Dataset<Row> storable(Dataset<Row> d) {
    StructType t = d.schema();
    Column[] out = new Column[t.size()];
    for (int i = 0; i < out.length; i++) {
      StructField f = t.fields()[i];
      Column c = d.col("`" + f.name().replace("`", "``") + "`");
      String json = f.dataType().json();
      out[i] = json.contains("\"void\"") || json.contains("\"null\"")
          ? c.cast(DataType.fromJson(json.replace("\"void\"", "\"string\"").replace("\"null\"", "\"string\"")))
              .as(f.name())
          : c;
    }
    return d.select(out);
  }

  private static void failed(Throwable t, ObjectNode answer) {
    StringBuilder why = new StringBuilder();
    int n = 0;
    for (Throwable c = t; c != null && n < 12; c = c.getCause(), n++) {
      why.append(n == 0 ? "" : "; because: ").append(c);
      if (c.getClass().getName().equals("stoa.spark.StoaException")) {
        try {
          answer.put("object", (String) c.getClass().getMethod("object").invoke(c));
          answer.put("offset", (Long) c.getClass().getMethod("offset").invoke(c));
          answer.put("status", (Integer) c.getClass().getMethod("status").invoke(c));
        } catch (ReflectiveOperationException e) {
          why.append("; ").append(e);
        }
      }
    }
    answer.put("error", why.toString());
  }
}
