// Package recovery puts a reader together of what is left of a RedFile, or of a table's parts.
package recovery
