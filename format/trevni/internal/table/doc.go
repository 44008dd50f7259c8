// Package table is a file as rows, a format.Reader: its schema, first values for look-ups, the parts beside it, and
// what it says against itself.
package table
