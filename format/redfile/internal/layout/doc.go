// Package layout is what the bytes of a RedFile are called, both ways: metadata of the five generations, headers of
// pages, index pages, sync blocks; names, options, and the kinds of findings.
package layout
