// Package container opens a file without its schema: it reads the metadata, locates chunks and their metadata, and
// checks that the other files named by the metadata were written together with it.
package container
