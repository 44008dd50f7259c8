// Package source is the flags that say what is read, and how: --from, --opt, budgets, columns, rows, filters.
package source
