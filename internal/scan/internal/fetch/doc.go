// Package fetch returns the pages of a column chunk with their bytes, reading ahead and merging reads, and decodes
// them: decoding a page yields all of its entries or leaves no trace.
package fetch
