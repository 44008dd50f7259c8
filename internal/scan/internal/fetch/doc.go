// Package fetch gives the pages of a column chunk with their bytes, read ahead and together, and decodes them: a page
// gives all of its entries or leaves no trace.
package fetch
