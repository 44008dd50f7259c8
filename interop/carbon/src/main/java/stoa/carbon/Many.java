package stoa.carbon;

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;

/**
 * Reads many directories in one run. Each line of the list is DIR, OUT and, perhaps, column=value, with tabs between; the rows go to OUT as
 * JSON lines, or the reason why there are none to OUT.err.
 */
public final class Many {
  public static void main(String[] a) throws Exception {
    System.setOut(System.err);
    Judge.properties();
    int read = 0, failed = 0;
    for (String line : Files.readAllLines(Paths.get(a[0]), StandardCharsets.UTF_8)) {
      String[] f = line.split("\t");
      Judge.Job j = new Judge.Job();
      j.dir = new File(f[0]).getCanonicalPath();
      j.eq = f.length > 2 ? f[2] : null;
      j.rows = Judge.file(f[1]);
      try {
        Judge.read(j);
        read++;
      } catch (Throwable t) {
        failed++;
        StringWriter why = new StringWriter();
        t.printStackTrace(new PrintWriter(why));
        Files.write(Paths.get(f[1] + ".err"), why.toString().getBytes(StandardCharsets.UTF_8));
      }
      j.rows.close();
    }
    System.err.println("many: " + read + " read, " + failed + " failed");
    System.err.flush();
    Runtime.getRuntime().halt(0);
  }
}
