// Package write writes files: it chooses encodings, encodes pages, and writes chunks, Bloom filters, indexes and the
// footer with what they say of values.
package write
