package stoa.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkFiles;

/**
 * The command, as it is found on this machine: where option command or spark.stoa.command says, among the files that
 * --files brought, or on the PATH. Executors look for themselves, and must find the version that the driver has.
 */
final class Command implements Serializable {
  private static final long serialVersionUID = 1;
  private static final String NAME = "stoa";
  private static final Map<String, String> VERSIONS = new ConcurrentHashMap<>();

  private final String option; // null: not said
  private final String version;
  private transient String path;

  private Command(String option, String path) {
    this.option = option;
    this.path = path;
    version = versionOf(path);
  }

  /** The command on the driver. */
  static Command find(String option) {
    return new Command(option, locate(option));
  }

  /** Where the command is here. The first time, its version is compared with the driver's. */
  String path() {
    if (path == null) {
      String p = locate(option);
      String v = versionOf(p);
      if (!v.equals(version)) {
        throw new StoaException(-1, p + " on this executor is \"" + v + "\", the driver has \"" + version
            + "\": splits are read by the version that planned them");
      }
      path = p;
    }
    return path;
  }

  private static String locate(String option) {
    SparkEnv env = SparkEnv.get();
    String said = option != null || env == null ? option : env.conf().get("spark.stoa.command", null);
    if (said != null) {
      if (!new File(said).canExecute()) {
        throw new StoaException(-1, said + ", which option command or spark.stoa.command names, is no program here");
      }
      return said;
    }
    if (env != null) {
      File f = new File(SparkFiles.get(NAME));
      if (f.isFile() && (f.canExecute() || f.setExecutable(true))) {
        return f.getPath();
      }
    }
    String all = System.getenv("PATH");
    for (String dir : (all == null ? "" : all).split(File.pathSeparator)) {
      File f = new File(dir, NAME);
      if (!dir.isEmpty() && f.isFile() && f.canExecute()) {
        return f.getPath();
      }
    }
    throw new StoaException(-1, "the command stoa is not on the PATH of this machine, nor did --files bring it; "
        + "option command or spark.stoa.command can say where it is");
  }

  private static String versionOf(String path) {
    String key = path + " " + new File(path).lastModified();
    String v = VERSIONS.get(key);
    if (v == null) {
      Answer a = answer(path, list("version"));
      if (a.status != 0 || !a.text().startsWith("stoa ")) {
        throw new StoaException(a.status, path + " does not answer as stoa does: " + a.errors);
      }
      v = a.text().trim();
      VERSIONS.put(key, v);
    }
    return v;
  }

  private static List<String> list(String verb) {
    List<String> args = new ArrayList<>();
    args.add(verb);
    return args;
  }

  /** What a verb wrote. */
  static final class Answer {
    final int status;
    final byte[] out;
    final String errors;

    Answer(int status, byte[] out, String errors) {
      this.status = status;
      this.out = out;
      this.errors = errors;
    }

    String text() {
      return new String(out, StandardCharsets.UTF_8);
    }
  }

  /** Runs a verb to its end. */
  Answer run(List<String> args) {
    return answer(path(), args);
  }

  private static Answer answer(String path, List<String> args) {
    List<String> all = new ArrayList<>();
    all.add(path);
    all.addAll(args);
    Process p = null;
    try {
      p = new ProcessBuilder(all).start();
      p.getOutputStream().close();
      Errors errors = new Errors(p);
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      byte[] b = new byte[1 << 16];
      InputStream in = p.getInputStream();
      for (int n = in.read(b); n >= 0; n = in.read(b)) {
        out.write(b, 0, n);
      }
      return new Answer(p.waitFor(), out.toByteArray(), errors.text());
    } catch (IOException e) {
      throw new StoaException(-1, path + ": " + e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoaException(-1, args.get(0) + " was interrupted", e);
    } finally {
      if (p != null) {
        p.destroyForcibly();
      }
    }
  }

  /** What a process writes to its standard error, up to a limit; the rest is read, and left out. */
  static final class Errors extends Thread {
    private static final int MOST = 1 << 16;
    private final InputStream in;
    private static final Pattern WORK = Pattern.compile("^\\{\"stoa_work\":1,.*\\R?", Pattern.MULTILINE);
    private final ByteArrayOutputStream kept = new ByteArrayOutputStream();

    Errors(Process p) {
      super("stoa errors");
      in = p.getErrorStream();
      setDaemon(true);
      start();
    }

    @Override public void run() {
      byte[] b = new byte[4096];
      try {
        for (int n = in.read(b); n >= 0; n = in.read(b)) {
          if (kept.size() < MOST) {
            kept.write(b, 0, n);
          }
        }
      } catch (IOException e) {
        // the process was killed, and its pipe closed
      }
    }

    private String all() throws InterruptedException {
      join(5000); // a child of the process could keep the pipe open
      return new String(kept.toByteArray(), StandardCharsets.UTF_8);
    }

    /** All that is said to people, when the process has ended. */
    String text() throws InterruptedException {
      String s = WORK.matcher(all()).replaceAll("").trim();
      return s.isEmpty() ? "it said nothing" : s;
    }

    /** What scan --work says of its work; null: nothing. */
    JsonNode work() throws InterruptedException {
      Matcher m = WORK.matcher(all());
      try {
        return m.find() ? new ObjectMapper().readTree(m.group()) : null;
      } catch (IOException e) {
        return null; // it was cut off
      }
    }
  }
}
