// Package rewrite makes a file from the pages of others without decoding them: columns are dropped, files are
// concatenated, and the footer is written anew with everything that it had.
package rewrite
