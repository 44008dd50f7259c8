// Package page finds the pages of a column chunk by their headers or by the index page, compares them with the chunk's
// metadata, decompresses and decodes them. No checksum covers a page header, so without an index page the headers of
// the whole chunk are read, and their counts compared, before the first page is returned.
package page
