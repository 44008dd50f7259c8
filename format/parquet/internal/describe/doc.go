// Package describe accounts for every byte of a file.
package describe
