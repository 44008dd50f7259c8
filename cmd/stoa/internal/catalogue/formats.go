// Package catalogue is the one place of the command that names formats.
package catalogue

import (
	"slices"

	"stoa"
	"stoa/format"
	"stoa/format/kudu/kudufs"
	"stoa/format/kudubackup"
)

// Formats are the formats that the command knows.
func Formats() []format.Format {
	return append(slices.Clone(stoa.Formats), kudubackup.Format, kudufs.Format)
}
