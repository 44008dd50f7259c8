package rewrite

import (
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/write"
	"stoa/vec"
)

// storedOf returns the entries [from, to) of a vector with values in their stored form, to be encoded as how requires.
// They share the memory of the vector's levels.
func storedOf(v *vec.Vector, from, to int, how write.Stored) *write.Stored {
	how.Def, how.Rep = v.Def()[from:to], v.Rep()[from:to]
	for i := 0; i < len(how.Def); {
		n := 0 // number of consecutive values
		for i+n < len(how.Def) && how.Def[i+n] == how.MaxDef {
			n++
		}
		if n > 0 {
			addValues(&how, v, from+i, n)
		}
		i += n + 1
	}
	return &how
}

// addValues appends n values of a vector with values in their stored form; a boolean is a byte.
func addValues(to *write.Stored, v *vec.Vector, at, n int) {
	switch to.Physical {
	case meta.TypeBoolean:
		bools := make([]byte, n)
		for i := range bools {
			bools[i] = v.Bits()[(at+i)/8] >> ((at + i) % 8) & 1
		}
		to.AddFixed(bools)
	case meta.TypeBytes:
		to.AddStrings(v.Offsets(at)[:n+1], v.StringBytes())
	default:
		to.AddFixed(v.Data(at)[:n*v.Width()])
	}
}

// codesOf returns a function that finds the code of a value in a dictionary; if the dictionary has equal values, the
// first one's code.
func codesOf(dict *vec.Vector, physical meta.Physical) func(value []byte) (uint32, bool) {
	codes := make(map[string]uint32, dict.Len())
	for i := range dict.Len() {
		x := string(valueOf(dict, i, physical))
		if _, ok := codes[x]; !ok {
			codes[x] = uint32(i)
		}
	}
	return func(value []byte) (uint32, bool) {
		code, ok := codes[string(value)]
		return code, ok
	}
}

// valueOf returns value i of a dictionary.
func valueOf(dict *vec.Vector, i int, physical meta.Physical) []byte {
	switch physical {
	case meta.TypeBoolean:
		return []byte{dict.Bits()[i/8] >> (i % 8) & 1}
	case meta.TypeBytes:
		o := dict.Offsets(i)
		return dict.StringBytes()[o[0]:o[1]]
	}
	return dict.Data(i)[:dict.Width()]
}
