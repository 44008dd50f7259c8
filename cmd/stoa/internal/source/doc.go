// Package source is the flags that say what is read, and how: --from, --source-opt, limits, columns, rows, filters.
package source
