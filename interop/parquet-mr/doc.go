// Package parquetmr has no code of its own: its tests have parquet-mr, the Java implementation of Parquet that
// Hadoop, Spark and Hive use, read what stoa writes, and write what stoa reads. See README.md. They need the build
// tag "interop"; `interop/run parquet-mr` runs them.
package parquetmr
