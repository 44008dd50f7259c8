// Package page reads the pages of a column chunk: found by their headers or by the index page, compared with the
// chunk's metadata, decompressed and decoded. No checksum is over a page's header, so without an index page the
// headers of the whole chunk are read and their counts added up before the first page is returned.
package page
