package columnfile

import (
	"maps"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
)

// ReadKeys are the options of Open.
var ReadKeys = []format.OptionKey{
	{Name: "name", Values: "NAME", Help: "name of the column, if the file does not say one"},
	{Name: "precision", Values: "1…38", Help: "digits of a decimal column, if the file does not say"},
	{Name: "scale", Values: "0…38", Help: "digits behind the point of a decimal column, if the file does not say"},
	{Name: "kind", Values: "column, bloom, delta, index",
		Help: "what the file is, if it cannot be told from the footer"},
	{Name: "key", Values: "TYPE,TYPE,…",
		Help: "types of the key's columns: an ad-hoc index shows them instead of the encoded key"},
	{Name: "schema", Values: "FILE", Help: "recover without a footer: the schema in FILE (JSON, as stoa schema " +
		"-f json prints it) says the following, by the column's name"},
	{Name: "type", Values: "TYPE", Help: "recover without a footer: type of the values"},
	{Name: "encoding", Values: "ENCODING",
		Help: "recover without a footer: encoding of the values (default: the one with which blocks are found)"},
	{Name: "compression", Values: "none, lz4, snappy, zlib",
		Help: "recover without a footer: how blocks are compressed (default: likewise)"},
	{Name: "nullable", Values: "true, false",
		Help: "recover without a footer: whether blocks have null bitmaps (default: likewise)"},
	{Name: "checksums", Values: "true, false",
		Help: "recover without a footer: whether blocks have checksums (default true)"},
}

// ReadOptions are the options of Open, understood.
type ReadOptions struct {
	Name        string
	precision   int // 0: not given
	Scale       int // -1: not given
	Kind        block.Kind
	Key         []block.Type
	Typ         block.Type // -1: not given
	Array       bool       // of such values; only a table's schema says so
	Encoding    block.Encoding
	Compression block.Compression
	Nullable    bool
	NullableSet bool // nullable is given
	NoChecksums bool
	schema      string // a file
}

// ParseOptions reads the options; one that is not known is Invalid.
func ParseOptions(opts map[string]string) (o ReadOptions, err error) {
	o.Scale, o.Typ = -1, -1
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		if err := o.set(k, opts[k]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *ReadOptions) set(key, v string) (err error) {
	switch key {
	case "name":
		o.Name = v
	case "precision":
		o.precision, err = block.Number(key, v, 1, 38)
	case "scale":
		o.Scale, err = block.Number(key, v, 0, 38)
	case "kind":
		o.Kind, err = block.Pick(key, v,
			map[string]block.Kind{"column": block.KindColumn, "bloom": block.KindBloom, "delta": block.KindDelta,
				"index": block.KindIndex})
	case "key":
		for _, name := range strings.Split(v, ",") {
			t, err := block.TypeOption(strings.TrimSpace(name))
			if err != nil {
				return err
			}
			o.Key = append(o.Key, t)
		}
	case "schema":
		o.schema = v
	case "type":
		o.Typ, err = block.TypeOption(v)
	case "encoding":
		o.Encoding, err = block.Pick(key, v,
			map[string]block.Encoding{"plain": block.Plain, "prefix": block.Prefix, "rle": block.RLE,
				"dict": block.Dict, "bitshuffle": block.BitShuffle, "group-varint": block.GroupVarint})
	case "compression":
		o.Compression, err = block.Pick(key, v,
			map[string]block.Compression{"none": block.NoCompression, "lz4": block.LZ4, "snappy": block.Snappy,
				"zlib": block.Zlib})
	case "nullable":
		o.Nullable, err = block.Pick(key, v, block.BoolNames)
		o.NullableSet = true
	case "checksums":
		var on bool
		on, err = block.Pick(key, v, block.BoolNames)
		o.NoChecksums = !on
	default:
		return fault.Invalidf("cfile: there is no option %q for reading", key)
	}
	return err
}
