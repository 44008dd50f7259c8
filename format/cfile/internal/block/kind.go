package block

// Kind is the use of a CFile in Kudu. The files do not declare it; it is determined from their footers:
//
//	delta   metadata deltafilestats
//	bloom   binary, plain, not compressed, a value index and no positional one, num_values 0
//	index   binary, prefix, a value index and no positional one, metadata min_key and max_key
//	column  everything else
type Kind uint8

const (
	KindUnknown Kind = iota
	KindColumn       // a column's values
	KindBloom        // bloom filters of a rowset's keys
	KindDelta        // changes of rows
	KindIndex        // ad-hoc index: the encoded compound key of each row
)

func (k Kind) String() string {
	return [...]string{"unknown", "column file", "bloom file", "delta file", "ad-hoc index"}[k]
}

// Metadata keys of the footer: the encoded keys of the first and the last row.
const (
	MinKeyKey = "min_key"
	MaxKeyKey = "max_key"
)

// MetaDeltaStats is the footer's metadata of a delta file, a DeltaStatsPB.
const MetaDeltaStats = "deltafilestats"
