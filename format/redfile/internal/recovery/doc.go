// Package recovery makes a reader of the remainder of a RedFile or of the parts of a table: of intermediate metadata,
// written between row groups; of chunks found by their page headers; and of row groups assembled from these chunks by
// their paths. A structure is used only if nothing contradicts it, because a page may contain another RedFile.
package recovery
