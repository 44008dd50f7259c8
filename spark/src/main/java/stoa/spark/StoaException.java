package stoa.spark;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What the command said when it could not do something: a place in a file, if it named one. */
public final class StoaException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private static final Pattern PLACE =
      Pattern.compile("(?m)^(?:stoa: )?(.+?)\\[(\\d+)\\+(\\d+)\\]: (corrupt|unsupported|invalid|limit|bug): ");

  private final int status;
  private final String object;
  private final long offset;
  private final long length;

  StoaException(int status, String message) {
    this(status, message, null);
  }

  StoaException(int status, String message, Throwable cause) {
    super(message, cause);
    this.status = status;
    Matcher m = PLACE.matcher(message);
    boolean placed = m.find();
    object = placed ? m.group(1) : null;
    offset = placed ? Long.parseLong(m.group(2)) : -1;
    length = placed ? Long.parseLong(m.group(3)) : -1;
  }

  /** The exit status of the command; -1 if it has none. */
  public int status() {
    return status;
  }

  /** The file or object that is damaged; null if none was named. */
  public String object() {
    return object;
  }

  /** Where the damage begins in it; -1 if it is not known. */
  public long offset() {
    return offset;
  }

  /** How many bytes it takes; -1 if it is not known. */
  public long length() {
    return length;
  }
}
