// Package write writes files: it chooses encodings, encodes pages, and writes column chunks, Bloom filters, indexes and
// the footer with its statistics.
package write
