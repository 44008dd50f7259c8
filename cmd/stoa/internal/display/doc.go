// Package display formats text for terminals: widths of characters, line breaks, tables of rows, names of types.
package display
