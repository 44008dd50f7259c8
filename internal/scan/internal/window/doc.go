// Package window reads the rows of one row group, window by window: rows [a,b) of every column are decoded into
// vectors. A page that crosses b is decoded whole and its tail carried over, so no page is decoded twice. The filter's
// columns come first; pages of the other columns without a surviving row are not even fetched.
package window
