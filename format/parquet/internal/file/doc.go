// Package file opens a file: its footer, decrypted where keys are given, its schema and columns, where column chunks
// lie, the headers of their pages, their indexes and Bloom filters.
package file
