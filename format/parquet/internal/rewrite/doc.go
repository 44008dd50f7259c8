// Package rewrite makes a file of the pages of others without decoding them into it: columns are dropped, files are put
// behind each other, and the footer is written anew with everything in it that it had.
package rewrite
