// Package table reads a Trevni file as rows: it is a format.Reader, with the file's schema, look-ups by first values,
// the other parts of a table, and contradictions within the file.
package table
