package columnfile

import (
	"strings"

	"stoa/format/cfile/internal/block"
	"stoa/format/option"
)

// Types of the values of options.
type (
	Kind     string
	Encode   string
	Compress string
)

// Options are those of Open; they are documented in package cfile, as ReadOptions.
type Options struct {
	Name        string
	Precision   int
	Scale       *int
	Kind        Kind
	Key         []string
	Schema      string
	Type        string
	Encoding    Encode
	Compression Compress
	Nullable    *bool
	NoChecksums bool
}

// ReadTable are the options of Open.
var ReadTable = option.Table[Options]{Format: "cfile", For: "reading", Options: []option.Option[Options]{
	option.Text("name", "NAME", "name of the column, whatever the file says",
		func(o *Options) *string { return &o.Name }),
	option.Int("precision", "1…38", "digits of a decimal column, if the file does not say",
		func(o *Options) *int { return &o.Precision }, 1, 38),
	option.IntAt("scale", "0…38", "digits after the point of a decimal column, if the file does not say",
		func(o *Options) **int { return &o.Scale }, 0, 38),
	option.Pick("kind", "what the file is, if it cannot be told from the footer",
		func(o *Options) *Kind { return &o.Kind }, "column", "bloom", "delta", "index"),
	option.List("key", "TYPE,TYPE,…", "types of the key's columns: an ad-hoc index shows them instead of the encoded "+
		"key", func(o *Options) *[]string { return &o.Key }),
	option.Text("schema", "FILE", "recover without a footer: the schema in FILE (JSON, as stoa schema -f json prints "+
		"it) says the following, by the column's name", func(o *Options) *string { return &o.Schema }),
	option.Text("type", "TYPE", "recover without a footer: type of the values",
		func(o *Options) *string { return &o.Type }),
	option.Pick("encoding", "recover without a footer: encoding of the values (default: the one with which blocks are "+
		"found)", func(o *Options) *Encode { return &o.Encoding },
		"plain", "prefix", "rle", "dict", "bitshuffle", "group-varint"),
	option.Pick("compression", "recover without a footer: how blocks are compressed (default: likewise)",
		func(o *Options) *Compress { return &o.Compression }, "none", "lz4", "snappy", "zlib"),
	option.Tri("nullable", "recover without a footer: whether blocks have null bitmaps (default: likewise)",
		func(o *Options) **bool { return &o.Nullable }),
	option.Not("checksums", "recover without a footer: whether blocks have checksums (default true)",
		func(o *Options) *bool { return &o.NoChecksums }),
}}

// ReadOptions are the parsed options of Open.
type ReadOptions struct {
	Name        string
	precision   int // 0: not given
	Scale       int // -1: not given
	Kind        block.Kind
	Key         []block.Type
	Typ         block.Type // -1: not given
	Array       bool       // arrays of such values; known only from the schema of a table
	Encoding    block.Encoding
	Compression block.Compression
	Nullable    bool
	NullableSet bool // Nullable is given
	NoChecksums bool
	schema      string // name of a file
}

// kinds are the values of option kind.
var kinds = map[Kind]block.Kind{"column": block.KindColumn, "bloom": block.KindBloom, "delta": block.KindDelta,
	"index": block.KindIndex}

// ParseOptions parses the options; the error is Invalid.
func ParseOptions(opts map[string]string) (o ReadOptions, err error) {
	s, err := ReadTable.Parse(opts)
	o = ReadOptions{Name: s.Name, precision: s.Precision, Scale: -1, Kind: kinds[s.Kind], Typ: -1,
		Encoding: block.EncodingByName(string(s.Encoding)), Compression: block.CompressionByName(string(s.Compression)),
		NoChecksums: s.NoChecksums, schema: s.Schema}
	if err != nil {
		return o, err
	}
	if s.Scale != nil {
		o.Scale = *s.Scale
	}
	if o.NullableSet = s.Nullable != nil; o.NullableSet {
		o.Nullable = *s.Nullable
	}
	for _, name := range s.Key {
		t, err := block.TypeOption(strings.TrimSpace(name))
		if err != nil {
			return o, err
		}
		o.Key = append(o.Key, t)
	}
	if s.Type != "" {
		o.Typ, err = block.TypeOption(s.Type)
	}
	return o, err
}
