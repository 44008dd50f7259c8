// Package parquet has no code of its own: its tests have pyarrow, DuckDB and parquet-go read the Parquet files
// that stoa writes. See README.md. They need the build tag "interop"; `interop/run parquet` runs them.
package parquet
