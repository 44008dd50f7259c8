// Package page decodes and encodes one page of a column: the encodings of format 3, and those of formats 1 and 2, which
// are in the files v12_*.go and write_v12_*.go. It works on bytes in memory and knows neither files nor tables.
package page
