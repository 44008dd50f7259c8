// Package ls lists the contents of a place: tables, tablets, segments, blocks.
package ls
