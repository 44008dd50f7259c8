package engine

import _ "github.com/duckdb/duckdb-go-bindings/lib/linux-amd64" // DuckDB itself, as static libraries
