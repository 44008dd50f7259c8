// Package table reads a RedFile as a format.Reader: its Arrow schema, its row groups and their numbers of rows, and
// whether other parts of the table exist.
package table
