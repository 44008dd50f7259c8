// Package source has the flags that determine what is read, and how: --from, --source-opt, limits, columns, rows,
// filters.
package source
