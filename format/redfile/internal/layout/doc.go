// Package layout parses and writes the metadata of RedFiles in its five generations, page headers, index pages and sync
// blocks. It also has the names of files, the options for reading, and the codes of findings.
package layout
