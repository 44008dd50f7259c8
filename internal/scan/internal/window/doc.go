// Package window runs over the rows of one row group, window by window: rows [a,b) of every column are decoded into
// vectors, a page that crosses b is decoded whole and its tail carried over, so no page is decoded twice. Filter
// columns come first; pages of the others without a surviving row are not even fetched.
package window
