// Package recovery makes a reader of what is left of a RedFile, or of the parts of a table: of the metadata so far that
// was written between row groups, of chunks found by their page headers, and of row groups made of these by their
// paths. A structure is used only if nothing contradicts it: a page may contain another RedFile.
package recovery
