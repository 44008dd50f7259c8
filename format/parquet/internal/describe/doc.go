// Package describe shows what a file consists of, byte by byte.
package describe
