// Package container is an open file below its schema: its metadata, where chunks and their metadata are, and whether
// the files that it names are those that were written with it.
package container
