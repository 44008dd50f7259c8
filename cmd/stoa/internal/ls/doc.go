// Package ls is what a place holds: tables, tablets, segments, blocks.
package ls
