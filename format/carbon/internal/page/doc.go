// Package page is one page, both ways: the encodings of format 3, and the forms of formats 1 and 2, which are in the
// files v12_*.go and write_old_*.go.
package page
