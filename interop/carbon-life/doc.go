// Package carbonlife tests whole histories of tables: stoa and the real CarbonData, under Spark in one process for all
// tables, change a table in turn, by operations drawn from a seed. After each operation both read all rows, which must
// equal a model's. interop/run carbon-life runs it; see interop/README.md.
package carbonlife
