// Package container opens a file without its schema: it reads the metadata, finds chunks and their metadata, and checks
// that the other files that the metadata names are those that were written with it.
package container
