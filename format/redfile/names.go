package redfile

import "fmt"

const (
	magic    = "RED1"
	magicLen = 4
	tailLen  = 8 // length of the metadata, magic
	minFile  = magicLen + tailLen
)

// metadataFile is the object of a split file that holds the metadata only.
const metadataFile = "_metadata.red"

// dataFile is the one that holds all row groups, if they are not split.
const dataFile = "data.red"

// partName is the file of a split table that begins with row group n.
func partName(n int) string { return fmt.Sprintf("part-%05d.red", n) }

// minColumn is less than any metadata of a column is long.
const minColumn = 4
