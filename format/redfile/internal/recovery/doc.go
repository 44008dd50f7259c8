// Package recovery puts a reader together from what is left of a RedFile, or of a table's parts: metadata so far that
// was written between row groups (FooterAt), chunks found by their pages' headers, row groups made of them by their
// columns' paths. Nothing is taken that only looks right: a file may contain another RedFile in a page.
package recovery
