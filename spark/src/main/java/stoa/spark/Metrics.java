package stoa.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What Spark's page shows of a scan. Spark makes them by their names, so they are public and take nothing. */
public final class Metrics {
  private Metrics() {}

  public static final class Stored extends CustomSumMetric {
    @Override public String name() {
      return "stoaBytesStored";
    }

    @Override public String description() {
      return "stored bytes of the splits, about";
    }
  }

  public static final class Received extends CustomSumMetric {
    @Override public String name() {
      return "stoaBytesReceived";
    }

    @Override public String description() {
      return "bytes of Arrow that came";
    }
  }

  public static final class Read extends CustomSumMetric {
    @Override public String name() {
      return "stoaBytesRead";
    }

    @Override public String description() {
      return "bytes read, with metadata";
    }
  }

  public static final class PagesRead extends CustomSumMetric {
    @Override public String name() {
      return "stoaPagesRead";
    }

    @Override public String description() {
      return "pages read";
    }
  }

  public static final class PagesSkipped extends CustomSumMetric {
    @Override public String name() {
      return "stoaPagesSkipped";
    }

    @Override public String description() {
      return "pages of the splits that were skipped";
    }
  }

  public static final class Splits extends CustomSumMetric {
    @Override public String name() {
      return "stoaSplits";
    }

    @Override public String description() {
      return "splits";
    }
  }

  public static final class Losing extends CustomSumMetric {
    @Override public String name() {
      return "stoaLosing";
    }

    @Override public String description() {
      return "splits that lost rows or cells";
    }
  }

  static CustomTaskMetric value(String name, long value) {
    return new CustomTaskMetric() {
      @Override public String name() {
        return name;
      }

      @Override public long value() {
        return value;
      }
    };
  }
}
