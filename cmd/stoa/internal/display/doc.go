// Package display is what a terminal wants: widths of characters, lines that fit, tables of rows, types in words.
package display
