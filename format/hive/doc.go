// Package hive reads directories whose names are values of partition columns, y=2024/region=eu, as Hive and Spark write
// them: all files below are one table of Parquet, RedFile, CFile, Trevni, CSV, JSON lines or Arrow, and the columns
// that are directories are columns of it.
package hive
