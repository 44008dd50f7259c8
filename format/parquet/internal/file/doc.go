// Package file opens a file: its footer, decrypted if keys are supplied, its schema and columns, and the positions of
// column chunks, page headers, indexes and Bloom filters.
package file
