package main

import (
	"slices"

	"stoa"
	"stoa/format"
	"stoa/format/kudubackup"
)

// allFormats are the formats that the command knows.
func allFormats() []format.Format {
	return append(slices.Clone(stoa.Formats), kudubackup.Format)
}
