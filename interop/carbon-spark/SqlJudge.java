package stoa.carbon;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import org.apache.carbondata.core.util.CarbonProperties;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Runs SQL with CarbonData under Spark: SqlJudge STORE WORK FILE. STORE, a directory or an address of Hadoop, holds table directories, which are registered first under their
 * names; WORK takes everything else; FILE has a statement a line, or is "-": then statements are read from standard input and answered
 * one by one, with "== end" after each answer. Before the rows of statement n, as JSON lines, comes "== n"; one that fails gives "!! "
 * and the reason, and the others go on.
 */
public final class SqlJudge {
  public static void main(String[] a) {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    System.setOut(System.err); // stdout is for rows only
    int rc = 0;
    String step = "start";
    try {
      Path store = new Path(a[0].contains("://") ? a[0] : new File(a[0]).getAbsolutePath());
      String work = new File(a[1]).getAbsolutePath();
      boolean asked = a[2].equals("-");
      BufferedReader statements = asked
          ? new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))
          : Files.newBufferedReader(Paths.get(a[2]), StandardCharsets.UTF_8);
      CarbonProperties.getInstance()
          .addProperty("carbon.number.of.cores.while.loading", "1")
          .addProperty("carbon.badRecords.location", work + "/bad");
      for (String k : System.getProperties().stringPropertyNames()) { // of JUDGE_JAVA_OPTS
        if (k.startsWith("carbon.")) CarbonProperties.getInstance().addProperty(k, System.getProperty(k));
      }
      SparkSession s = SparkSession.builder().master("local[1]").appName("judge")
          .config("spark.sql.extensions", "org.apache.spark.sql.CarbonExtensions")
          .config("spark.sql.warehouse.dir", store.toString())
          .config("javax.jdo.option.ConnectionURL", "jdbc:derby:;databaseName=" + work + "/meta;create=true")
          .config("spark.local.dir", work)
          .config("spark.ui.enabled", "false")
          .config("spark.sql.shuffle.partitions", "2")
          .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
          .config("spark.sql.session.timeZone", "UTC")
          .enableHiveSupport().getOrCreate();
      FileSystem files = store.getFileSystem(s.sparkContext().hadoopConfiguration());
      FileStatus[] dirs = files.listStatus(store);
      Arrays.sort(dirs);
      for (FileStatus dir : dirs) {
        String n = dir.getPath().getName();
        if (!files.exists(new Path(dir.getPath(), "Metadata/schema"))) continue;
        step = "register " + n;
        s.sql("refresh table `" + n + "`");
        if (!s.catalog().tableExists(n)) throw new IllegalStateException("not taken as a CarbonData table");
      }
      String sql;
      for (int i = 0; (sql = statements.readLine()) != null; i++) {
        out.println("== " + i);
        try {
          Dataset<Row> d = s.sql(sql);
          if (d.columns().length > 0) for (String row : d.toJSON().collectAsList()) out.println(row);
        } catch (Throwable t) {
          StringBuilder why = new StringBuilder(t.toString());
          for (Throwable c = t.getCause(); c != null; c = c.getCause()) why.append("; because: ").append(c);
          out.println("!! " + why.toString().replace('\n', ' '));
          if (Boolean.getBoolean("stoa.trace")) t.printStackTrace();
        }
        if (asked) out.println("== end");
        out.flush();
      }
      s.stop();
    } catch (Throwable t) {
      rc = 1;
      System.err.println("spark: " + step + ": " + t);
      for (Throwable c = t.getCause(); c != null; c = c.getCause()) System.err.println("spark:   because: " + c);
    }
    out.flush();
    System.err.flush();
    Runtime.getRuntime().halt(rc);
  }
}
