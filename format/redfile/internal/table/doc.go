// Package table is a RedFile as rows, a format.Reader: its Arrow schema, row groups and their rows, and what says that
// more of the table should be there.
package table
