package write

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
)

const (
	defaultGroupRows = 1 << 20
	defaultGroupSize = 256 << 20
	defaultPageSize  = 1 << 20
	defaultPageRows  = 40_000
	defaultMemory    = 512 << 20
)

var WriteKeys = slices.Concat(pageKeys, meta.PairKeys)

var pageKeys = []format.OptionKey{
	{Name: "compression", Values: "snappy|none|zstd|gzip|lz4|brotli",
		Help: "how pages are compressed (default snappy)"},
	{Name: "level", Values: "N", Help: "level of zstd, gzip and brotli"},
	{Name: "row-group-rows", Values: "N", Help: "rows of a row group at most (default 1048576)"},
	{Name: "row-group-size", Values: "BYTES", Help: "stored bytes after which a row group is ended (default 256MiB)"},
	{Name: "memory", Values: "BYTES", Help: "how much of a row group is kept in memory; more goes to a temporary " +
		"file (default 512MiB)"},
	{Name: "page-size", Values: "BYTES", Help: "size at which a data page is ended (default 1MiB)"},
	{Name: "page-rows", Values: "N", Help: "entries after which a data page is ended: who looks for a few rows " +
		"decodes a page of each column (default 40000; of booleans eight times as many)"},
	{Name: "dictionary", Values: "true|false", Help: "whether dictionaries are tried (default true)"},
	{Name: "encoding", Values: "auto|plain",
		Help: "whether encodings other than dictionaries are tried, too (default auto)"},
	{Name: "version", Values: "1.0|2.4|2.6", Help: "version of the format (default 2.6)"},
	{Name: "page-version", Values: "1|2", Help: "version of data pages (default 1)"},
	{Name: "page-index", Values: "true|false", Help: "whether column and offset indexes are written (default true)"},
	{Name: "crc", Values: "true|false", Help: "whether pages have checksums (default true)"},
	{Name: "bloom", Values: "COLUMN[,COLUMN…]",
		Help: "columns that get a Bloom filter, by their dotted path (default none)"},
	{Name: "key-file", Values: "FILE", Help: "encrypts with the keys of this file, which is as for reading: `footer " +
		"KEY`; columns with a line `column PATH KEY` have their own; `key ID KEY` names keys (default: nothing is " +
		"encrypted)"},
	{Name: "encryption", Values: "gcm|gcm-ctr",
		Help: "with key-file: AES-GCM, or for the bodies of pages AES-CTR, which proves nothing (default gcm)"},
	{Name: "plain-footer", Values: "true|false",
		Help: "with key-file: whether the footer, with the schema, is signed and not encrypted (default false)"},
	{Name: "plain-columns", Values: "COLUMN[,COLUMN…]",
		Help: "with key-file: columns that are not encrypted, by their dotted path (default none)"},
	{Name: "store-aad-prefix", Values: "true|false",
		Help: "with a line aad-prefix in key-file: whether the prefix stands in the file (default true)"},
	{Name: "sorting-columns", Values: "COLUMN[:desc][:nulls-first][,…]",
		Help: "columns by which rows are sorted, by their dotted path: rows that are not are refused (default none)"},
}

// writeOptions are the options of the writer, taken apart.
type writeOptions struct {
	codec     meta.Compression
	squeeze   func(dst, src []byte) ([]byte, error)
	groupRows int64
	groupSize int64
	memory    int64
	pageSize  int
	pageRows  int
	dict      bool
	auto      bool // encodings beside PLAIN and dictionaries
	nanos     bool // the version has instants in nanoseconds
	version   int32
	v2        bool // data pages
	index     bool
	crc       bool
	bloom     map[string]bool
	sort      []order.SortKey
	pairs     meta.PairChanges
	crypt     *encryption // nil: nothing is encrypted
}

func parseWriteOptions(opts map[string]string) (o writeOptions, err error) {
	if err = meta.CheckOpts(opts, WriteKeys); err != nil {
		return o, err
	}
	if err = o.compression(opts); err != nil {
		return o, err
	}
	if o.groupRows, err = number(opts, "row-group-rows", defaultGroupRows); err != nil {
		return o, err
	}
	if o.groupSize, err = size(opts, "row-group-size", defaultGroupSize, 1<<30); err != nil {
		return o, err
	}
	if o.memory, err = size(opts, "memory", defaultMemory, 1<<40); err != nil {
		return o, err
	}
	page, err := size(opts, "page-size", defaultPageSize, 1<<30)
	if err != nil {
		return o, err
	}
	o.pageSize = int(page)
	entries, err := number(opts, "page-rows", defaultPageRows)
	if err != nil {
		return o, err
	}
	o.pageRows = int(min(entries, 1<<24))
	for key, to := range map[string]*bool{"dictionary": &o.dict, "page-index": &o.index, "crc": &o.crc} {
		if *to, err = boolean(opts, key, true); err != nil {
			return o, err
		}
	}
	switch v := opts["version"]; v {
	case "1.0":
		o.version = 1
	case "2.4":
		o.version = 2
	case "", "2.6":
		o.version, o.nanos = 2, true
	default:
		return o, fault.Invalidf("version=%s: it is 1.0, 2.4 or 2.6", v)
	}
	switch v := opts["page-version"]; v {
	case "", "1":
	case "2":
		o.v2 = true
	default:
		return o, fault.Invalidf("page-version=%s: it is 1 or 2", v)
	}
	switch v := opts["encoding"]; v {
	case "", "auto":
		o.auto = o.version > 1
	case "plain":
	default:
		return o, fault.Invalidf("encoding=%s: it is auto or plain", v)
	}
	if v := opts["bloom"]; v != "" {
		o.bloom = map[string]bool{}
		for _, name := range meta.Names(v) {
			o.bloom[name] = false // not found yet
		}
	}
	if o.crypt, err = encryptionOptions(opts); err != nil {
		return o, err
	}
	if o.pairs, err = meta.ParsePairs(opts); err != nil {
		return o, err
	}
	o.sort, err = sortOption(opts["sorting-columns"])
	return o, err
}

// Around are the options that leave pages as they are.
type Around struct {
	GroupRows, GroupSize int64 // 0: not given
	Pairs                meta.PairChanges
}

// ParseAround takes these options apart; other is the name of one that changes pages.
func ParseAround(opts map[string]string) (a Around, other string, err error) {
	for _, key := range slices.Sorted(maps.Keys(opts)) {
		switch key {
		case "memory", "metadata", "drop-metadata", "row-group-rows", "row-group-size":
		default:
			return a, key, nil
		}
	}
	o, err := parseWriteOptions(opts)
	if a.Pairs = o.pairs; opts["row-group-rows"] != "" {
		a.GroupRows = o.groupRows
	}
	if opts["row-group-size"] != "" {
		a.GroupSize = o.groupSize
	}
	return a, "", err
}

func (o *writeOptions) compression(opts map[string]string) error {
	level := 0
	if v := opts["level"]; v != "" {
		var err error
		if level, err = strconv.Atoi(v); err != nil {
			return fault.Invalidf("level=%s is not a number", v)
		}
	}
	name := opts["compression"]
	if name == "" {
		name = "snappy"
	}
	var ok bool
	if o.codec, o.squeeze, ok = compressor(name, level); !ok {
		return fault.Invalidf("compression=%s: it is snappy, none, zstd, gzip, lz4 or brotli", name)
	}
	return nil
}

func number(opts map[string]string, key string, def int64) (int64, error) {
	v := opts[key]
	if v == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n <= 0 {
		return 0, fault.Invalidf("%s=%s is not a positive number", key, v)
	}
	return n, nil
}

// size is a number of bytes up to most, perhaps with a unit.
func size(opts map[string]string, key string, def, most int64) (int64, error) {
	v := opts[key]
	if v == "" {
		return def, nil
	}
	n, ok := format.ParseSize(v)
	if !ok || n == 0 || n > most {
		return 0, fault.Invalidf("%s=%s is not a number of bytes up to %d, as 65536 or 64KiB", key, v, most)
	}
	return n, nil
}

func boolean(opts map[string]string, key string, def bool) (bool, error) {
	switch v := opts[key]; v {
	case "":
		return def, nil
	case "true", "false":
		return v == "true", nil
	default:
		return false, fault.Invalidf("%s=%s: it is true or false", key, v)
	}
}

// sortOption takes sorting-columns apart: COLUMN[:desc][:nulls-first], separated by commas.
func sortOption(v string) (keys []order.SortKey, err error) {
	if v == "" {
		return nil, nil
	}
	for _, one := range meta.SplitList(v) {
		name, words := meta.CutName(one, ":")
		k := order.SortKey{Name: name}
		if words != "" && words[0] != ':' {
			return nil, fault.Invalidf("sorting-columns=%s: %q behind a quoted name", v, words)
		}
		for _, w := range strings.Split(words, ":")[1:] {
			switch w {
			case "desc":
				k.Descending = true
			case "nulls-first":
				k.NullsFirst = true
			default:
				return nil, fault.Invalidf("sorting-columns=%s: %q is neither desc nor nulls-first", v, w)
			}
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// encryptionOptions takes the options about encryption apart; nil: there shall be none.
func encryptionOptions(opts map[string]string) (*encryption, error) {
	name := opts["key-file"]
	if name == "" {
		for _, key := range []string{"encryption", "plain-footer", "plain-columns", "store-aad-prefix"} {
			if opts[key] != "" {
				return nil, fault.Invalidf("%s=%s: without key-file nothing is encrypted", key, opts[key])
			}
		}
		return nil, nil
	}
	ctr := opts["encryption"] == "gcm-ctr"
	if v := opts["encryption"]; v != "" && v != "gcm" && !ctr {
		return nil, fault.Invalidf("encryption=%s: it is gcm or gcm-ctr", v)
	}
	stored, err := boolean(opts, "store-aad-prefix", true)
	if err != nil {
		return nil, err
	}
	signed, err := boolean(opts, "plain-footer", false)
	if err != nil {
		return nil, err
	}
	var plain []string
	if v := opts["plain-columns"]; v != "" {
		plain = meta.Names(v)
	}
	return newEncryption(name, ctr, signed, stored, plain)
}
