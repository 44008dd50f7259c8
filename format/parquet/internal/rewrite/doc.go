// Package rewrite makes a file from the pages of others without decoding them: columns are dropped, files are
// concatenated, and a new footer is written that keeps everything in the old one.
package rewrite
