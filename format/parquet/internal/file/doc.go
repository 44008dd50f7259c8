// Package file opens a file: its footer, decrypted where keys are given, its schema and columns, the positions of
// column chunks, page headers, indexes and Bloom filters.
package file
