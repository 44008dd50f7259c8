// Package pieces writes a table as several files in a directory, such that a run that was killed at any moment can be
// resumed; or as directories of partitions.
package pieces
