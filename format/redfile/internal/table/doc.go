// Package table reads a RedFile as a format.Reader: its Arrow schema, row groups and their numbers of rows, and whether
// other parts of the table are there.
package table
