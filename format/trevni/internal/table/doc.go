// Package table reads a Trevni file as rows. It implements format.Reader and has the file's schema, lookups by first
// values, the other parts of a table, and contradictions within the file.
package table
