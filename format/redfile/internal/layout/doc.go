// Package layout parses and formats the metadata of RedFiles in its five generations, headers of pages, index pages and
// sync blocks. It also has names of files, options, and the kinds of findings.
package layout
