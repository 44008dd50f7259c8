package cfile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
)

// readKeys are the options of Open.
var readKeys = []format.OptionKey{
	{Name: "name", Values: "NAME", Help: "name of the column, if the file does not say one"},
	{Name: "precision", Values: "1…38", Help: "digits of a decimal column, if the file does not say"},
	{Name: "scale", Values: "0…38", Help: "digits behind the point of a decimal column, if the file does not say"},
	{Name: "kind", Values: "column, bloom, delta, index", Help: "what the file is, if it cannot be told from the footer"},
	{Name: "key", Values: "TYPE,TYPE,…", Help: "types of the key's columns: an ad-hoc index shows them instead of the encoded key"},
	{Name: "schema", Values: "FILE", Help: "recover without a footer: the schema in FILE (JSON, as stoa schema -f json prints it) says the following, by the column's name"},
	{Name: "type", Values: "TYPE", Help: "recover without a footer: type of the values"},
	{Name: "encoding", Values: "ENCODING", Help: "recover without a footer: encoding of the values (default: the one with which blocks are found)"},
	{Name: "compression", Values: "none, lz4, snappy, zlib", Help: "recover without a footer: how blocks are compressed (default: likewise)"},
	{Name: "nullable", Values: "true, false", Help: "recover without a footer: whether blocks have null bitmaps (default: likewise)"},
	{Name: "checksums", Values: "true, false", Help: "recover without a footer: whether blocks have checksums (default true)"},
}

// readOptions are the options of Open, understood.
type readOptions struct {
	name        string
	precision   int // 0: not given
	scale       int // -1: not given
	kind        Kind
	key         []Type
	typ         Type // -1: not given
	array       bool // of such values; only a table's schema says so
	encoding    Encoding
	compression Compression
	nullable    bool
	saysNulls   bool // nullable is given
	noChecksums bool
	schema      string // a file
}

// parseOptions reads the options; one that is not known is Invalid.
func parseOptions(opts map[string]string) (o readOptions, err error) {
	o.scale, o.typ = -1, -1
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		if err := o.set(k, opts[k]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *readOptions) set(key, v string) (err error) {
	switch key {
	case "name":
		o.name = v
	case "precision":
		o.precision, err = number(key, v, 1, 38)
	case "scale":
		o.scale, err = number(key, v, 0, 38)
	case "kind":
		o.kind, err = pick(key, v, map[string]Kind{"column": KindColumn, "bloom": KindBloom, "delta": KindDelta, "index": KindIndex})
	case "key":
		for _, name := range strings.Split(v, ",") {
			t, err := typeByName(strings.TrimSpace(name))
			if err != nil {
				return err
			}
			o.key = append(o.key, t)
		}
	case "schema":
		o.schema = v
	case "type":
		o.typ, err = typeByName(v)
	case "encoding":
		o.encoding, err = pick(key, v, map[string]Encoding{"plain": Plain, "prefix": Prefix, "rle": RLE, "dict": Dict, "bitshuffle": BitShuffle, "group-varint": GroupVarint})
	case "compression":
		o.compression, err = pick(key, v, map[string]Compression{"none": NoCompression, "lz4": LZ4, "snappy": Snappy, "zlib": Zlib})
	case "nullable":
		o.nullable, err = pick(key, v, boolNames)
		o.saysNulls = true
	case "checksums":
		var on bool
		on, err = pick(key, v, boolNames)
		o.noChecksums = !on
	default:
		return fault.Invalidf("cfile: there is no option %q for reading", key)
	}
	return err
}

var boolNames = map[string]bool{"true": true, "false": false}

func number(key, v string, least, most int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return 0, fault.Invalidf("cfile: option %s=%s: a number from %d to %d is wanted", key, v, least, most)
	}
	return n, nil
}

// sizeOption is a number of bytes, perhaps with a unit.
func sizeOption(key, v string, least, most int) (int, error) {
	n, ok := format.ParseSize(v)
	if !ok || n < int64(least) || n > int64(most) {
		return 0, fault.Invalidf("cfile: option %s=%s: a number of bytes from %d to %d is wanted, as 65536 or 64KiB", key, v, least, most)
	}
	return int(n), nil
}

func pick[T any](key, v string, values map[string]T) (T, error) {
	x, ok := values[v]
	if !ok {
		return x, fault.Invalidf("cfile: option %s=%s: one of %s is wanted", key, v, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	return x, nil
}

// typeByName is the type that its String names.
func typeByName(name string) (Type, error) {
	for t, info := range types {
		if info.name == name {
			return t, nil
		}
	}
	return -1, fault.Invalidf("cfile: there is no type %q", name)
}
