package cfile

// Kind is what a CFile is in Kudu. The files do not say it; it is told from what they have:
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
	minKeyKey = "min_key"
	maxKeyKey = "max_key"
)

func (f *file) kind() Kind {
	t := &f.footer
	if _, ok := t.Get(metaDeltaStats); ok && f.unfit(KindDelta) == "" {
		return KindDelta
	}
	if t.Type != Binary || t.ValIdx == nil || t.PosIdx != nil || t.Nullable || t.Array() {
		return KindColumn
	}
	_, hasMin := t.Get(minKeyKey)
	_, hasMax := t.Get(maxKeyKey)
	switch {
	case t.Encoding == Plain && t.Compression == NoCompression && t.NumValues == 0 && !hasMin && !hasMax:
		return KindBloom
	case t.Encoding == Prefix && hasMin && hasMax:
		return KindIndex
	}
	return KindColumn
}

// unfit says why a file cannot be of a kind other than a column, from what its readers rely on; "" if it can.
func (f *file) unfit(k Kind) string {
	t := &f.footer
	switch {
	case k == KindDelta && (t.ValIdx == nil || t.Type != Binary || t.Nullable || t.Array()):
		return "not a delta file: those are binary, without nulls, and have a value index"
	case k == KindBloom && (t.ValIdx == nil || t.Type != Binary || f.codec != nil):
		return "not a bloom file: those are binary, not compressed, and have a value index"
	case k == KindIndex && (t.ValIdx == nil || t.Type != Binary || t.Nullable || t.Array()):
		return "not an ad-hoc index: those are binary, without nulls, and have a value index"
	}
	return ""
}
