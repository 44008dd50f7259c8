package org.apache.spark.sql.connector.read;

import org.apache.spark.sql.connector.expressions.SortOrder;

/** Spark's own from 3.4 on, as it is declared there: we compile with 3.3. It is not in the jar. */
public interface SupportsReportOrdering extends Scan {
  SortOrder[] outputOrdering();
}
