package meta

// PartKey is the pair of the footer in which a file that is one of several of a table says which it is.
const PartKey = "stoa.part"

// Part says which file of a table's a file is. The others lie beside it; PartName is what they are called.
type Part struct {
	Number int  `json:"number"` // from 0 on
	Last   bool `json:"last"`
}
