package meta

// PartKey is the key/value metadata key under which a file records its place among the files of a table.
const PartKey = "stoa.part"

// Part is the place of a file in a table of several files. The other files are in the same directory, named by
// PartName.
type Part struct {
	Number int  `json:"number"` // from 0
	Last   bool `json:"last"`
	// The directory of a Kudu backup together with the one above it, that is table and time; "" if the file is in none.
	Of string `json:"of,omitempty"`
}
