// Package columnfile is one open CFile: its blocks read and checked, the index trees walked, the pages of a
// column, bloom filters and deltas.
package columnfile
