package layout

import "fmt"

// The magic at both ends of a file, and sizes in bytes.
const (
	Magic    = "RED1"
	MagicLen = 4
	TailLen  = 8 // length of the metadata, magic
	MinFile  = MagicLen + TailLen
)

// MetadataFile is the object of a split table that contains only the metadata.
const MetadataFile = "_metadata.red"

// DataFile is the object with all row groups, if these are not split.
const DataFile = "data.red"

// PartName returns the name of the file of a split table that begins with row group n.
func PartName(n int) string { return fmt.Sprintf("part-%05d.red", n) }

// minColumn is a lower bound of the size of column metadata, in bytes.
const minColumn = 4
