package rewrite

import (
	"stoa/format/parquet/internal/write"
	"stoa/vec"
)

// storedOf takes the entries [from, to) of a vector that was decoded as it is stored, to be encoded as how says; they
// share its memory.
func storedOf(v *vec.Vector, from, to int, how write.Stored) write.Stored {
	how.Def, how.Rep, how.Width = v.Def()[from:to], v.Rep()[from:to], v.Width()
	for i, def := range how.Def {
		if def == how.MaxDef {
			how.Values = append(how.Values, valueOf(v, from+i, &how))
		}
	}
	return how
}

// valueOf is value i of a vector that was decoded as it is stored; a boolean is a byte.
func valueOf(v *vec.Vector, i int, how *write.Stored) []byte {
	switch {
	case how.Boolean:
		return []byte{v.Bits()[i/8] >> (i % 8) & 1}
	case how.Text:
		o := v.Offsets(i)
		return v.StringBytes()[o[0]:o[1]]
	}
	return v.Data(i)[:v.Width()]
}

// codesOf gives the code of each value of a dictionary; of equal values, the first.
func codesOf(dict *vec.Vector, how *write.Stored) func(value []byte) (uint32, bool) {
	codes := make(map[string]uint32, dict.Len())
	for i := range dict.Len() {
		x := string(valueOf(dict, i, how))
		if _, ok := codes[x]; !ok {
			codes[x] = uint32(i)
		}
	}
	return func(value []byte) (uint32, bool) {
		code, ok := codes[string(value)]
		return code, ok
	}
}
