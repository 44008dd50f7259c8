// Package page is the pages of a column chunk: found by their headers or by the index page, compared with the chunk,
// decompressed and decoded.
package page
