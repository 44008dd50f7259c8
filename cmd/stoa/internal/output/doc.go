// Package output is the flags that say where results go, and in which form: tables, JSON, CSV, files.
package output
