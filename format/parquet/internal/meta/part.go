package meta

// PartKey is the key/value metadata in which a file says which of several files of a table it is.
const PartKey = "stoa.part"

// Part says which file of a table a file is. The other files are in the same directory, named by PartName.
type Part struct {
	Number int  `json:"number"` // from 0 on
	Last   bool `json:"last"`
	// the directory of a backup, with the one above it: its table and its time; "": it is of none
	Of string `json:"of,omitempty"`
}
