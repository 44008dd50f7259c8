package write

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/option"
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

// The types of options that accept one of a few values.
type (
	Compress    string
	Encode      string
	Version     string
	PageVersion string
	Cipher      string

	EmptyStructs string
)

// SortColumn is a column by which rows are sorted.
type SortColumn struct {
	Column     string // its dotted path
	Descending bool
	NullsFirst bool
}

// Options are the options of Create; they are documented in package parquet.
type Options struct {
	Compression      Compress
	CompressionLevel int
	RowGroupRows     int64
	RowGroupSize     int64
	Memory           int64
	PageSize         int
	PageRows         int64
	NoDictionary     bool
	Encoding         Encode
	Version          Version
	PageVersion      PageVersion
	NoPageIndex      bool
	NoCRC            bool
	Bloom            []string
	KeyFile          string
	Encryption       Cipher
	PlainFooter      bool
	PlainColumns     []string
	NoAADPrefix      bool
	SortingColumns   []SortColumn
	Metadata         []string
	DropMetadata     []string
	EmptyStructs     EmptyStructs
}

// WriteTable is the options table of Options.
var WriteTable = option.Table[Options]{Format: "parquet", For: "writing", Options: []option.Option[Options]{
	option.Pick("compression", "how pages are compressed (default snappy)",
		func(o *Options) *Compress { return &o.Compression }, "snappy", "none", "zstd", "gzip", "lz4", "brotli"),
	option.Int("level", "N", "level of zstd, gzip and brotli", func(o *Options) *int { return &o.CompressionLevel },
		-1<<31, 1<<31-1),
	option.Int("row-group-rows", "N", "rows of a row group at most (default 1048576)",
		func(o *Options) *int64 { return &o.RowGroupRows }, 1, math.MaxInt64),
	option.Size("row-group-size", "stored bytes after which a row group is ended (default 256MiB)",
		func(o *Options) *int64 { return &o.RowGroupSize }, 1, 1<<30),
	option.Size("memory", "how much of a row group is kept in memory; more goes to a temporary file (default 512MiB)",
		func(o *Options) *int64 { return &o.Memory }, 1, 1<<40),
	option.Size("page-size", "size at which a data page is ended (default 1MiB)",
		func(o *Options) *int { return &o.PageSize }, 1, 1<<30),
	option.Int("page-rows", "N", "entries after which a data page is ended: who looks for a few rows decodes a page "+
		"of each column (default 40000; of booleans eight times as many)",
		func(o *Options) *int64 { return &o.PageRows }, 1, math.MaxInt64),
	option.Not("dictionary", "whether dictionaries are tried (default true)",
		func(o *Options) *bool { return &o.NoDictionary }),
	option.Pick("encoding", "whether encodings other than dictionaries are tried, too (default auto)",
		func(o *Options) *Encode { return &o.Encoding }, "auto", "plain"),
	option.Pick("version", "version of the format (default 2.6)",
		func(o *Options) *Version { return &o.Version }, "1.0", "2.4", "2.6"),
	option.Pick("page-version", "version of data pages (default 1)",
		func(o *Options) *PageVersion { return &o.PageVersion }, "1", "2"),
	option.Not("page-index", "whether column and offset indexes are written (default true)",
		func(o *Options) *bool { return &o.NoPageIndex }),
	option.Not("crc", "whether pages have checksums (default true)", func(o *Options) *bool { return &o.NoCRC }),
	option.List("bloom", "COLUMN[,COLUMN…]", "columns that get a Bloom filter, by their dotted path (default none)",
		func(o *Options) *[]string { return &o.Bloom }),
	option.Text("key-file", "FILE", "encrypts with the keys of this file, which is as for reading: `footer KEY`; "+
		"columns with a line `column PATH KEY` have their own; `key ID KEY` names keys (default: nothing is encrypted)",
		func(o *Options) *string { return &o.KeyFile }),
	option.Pick("encryption", "with key-file: AES-GCM, or for the bodies of pages AES-CTR, which proves nothing "+
		"(default gcm)", func(o *Options) *Cipher { return &o.Encryption }, "gcm", "gcm-ctr"),
	option.Bool("plain-footer", "with key-file: whether the footer, with the schema, is signed and not encrypted "+
		"(default false)", func(o *Options) *bool { return &o.PlainFooter }),
	option.List("plain-columns", "COLUMN[,COLUMN…]", "with key-file: columns that are not encrypted, by their dotted "+
		"path (default none)", func(o *Options) *[]string { return &o.PlainColumns }),
	option.Not("store-aad-prefix", "with a line aad-prefix in key-file: whether the prefix stands in the file "+
		"(default true)", func(o *Options) *bool { return &o.NoAADPrefix }),
	option.Custom(format.OptionKey{Name: "sorting-columns", Values: "COLUMN[:desc][:nulls-first][,…]",
		Help: "columns by which rows are sorted, by their dotted path: rows that are not are refused (default none)"},
		func(o *Options) *[]SortColumn { return &o.SortingColumns }, setSorting, sortingText),
	option.List("metadata", "KEY=VALUE[,KEY=VALUE…]", "key/value metadata that are added, or replace others (an item "+
		"with a comma stands in double quotes)", func(o *Options) *[]string { return &o.Metadata }),
	option.List("drop-metadata", "KEY[,KEY…]", "key/value metadata that are left out (default none)",
		func(o *Options) *[]string { return &o.DropMetadata }),
	option.Pick("empty-structs", "structs without fields, which Parquet lacks: kept with a field "+meta.NoFields+
		" that is always null, which other readers see, or refused (default keep)",
		func(o *Options) *EmptyStructs { return &o.EmptyStructs }, "keep", "refuse"),
}}

// writeOptions are the parsed options of a writer.
type writeOptions struct {
	codec     meta.Compression
	compress  func(dst, src []byte) ([]byte, error)
	groupRows int64
	groupSize int64
	memory    int64
	pageSize  int
	pageRows  int
	dict      bool
	auto      bool // try encodings other than PLAIN and dictionaries
	nanos     bool // the version has nanosecond timestamps
	version   int32
	v2        bool // data pages of version 2
	index     bool
	crc       bool
	bloom     map[string]bool
	sort      []order.SortKey
	keyValues meta.KeyValueChanges
	crypt     *encryption // nil if nothing is encrypted

	refuseEmpty bool // structs without fields
}

func parseWriteOptions(opts map[string]string) (o writeOptions, err error) {
	s, err := WriteTable.Parse(opts)
	if err != nil {
		return o, err
	}
	o = writeOptions{groupRows: cmp.Or(s.RowGroupRows, defaultGroupRows),
		groupSize: cmp.Or(s.RowGroupSize, defaultGroupSize), memory: cmp.Or(s.Memory, defaultMemory),
		pageSize: cmp.Or(s.PageSize, defaultPageSize), pageRows: int(min(cmp.Or(s.PageRows, defaultPageRows), 1<<24)),
		dict: !s.NoDictionary, index: !s.NoPageIndex, crc: !s.NoCRC, version: 2, v2: s.PageVersion == "2",
		refuseEmpty: s.EmptyStructs == "refuse"}
	if s.Version == "1.0" {
		o.version = 1
	}
	o.nanos = s.Version == "" || s.Version == "2.6"
	o.auto = s.Encoding != "plain" && o.version > 1
	o.codec, o.compress, _ = compressor(string(cmp.Or(s.Compression, "snappy")), s.CompressionLevel)
	if len(s.Bloom) > 0 {
		o.bloom = map[string]bool{}
		for _, name := range s.Bloom {
			o.bloom[name] = false // not found yet
		}
	}
	for _, c := range s.SortingColumns {
		o.sort = append(o.sort, order.SortKey{Name: c.Column, Descending: c.Descending, NullsFirst: c.NullsFirst})
	}
	if o.keyValues, err = meta.ParseKeyValueChanges(s.Metadata, s.DropMetadata); err != nil {
		return o, err
	}
	if s.KeyFile != "" {
		o.crypt, err = newEncryption(s.KeyFile, s.Encryption == "gcm-ctr", s.PlainFooter, !s.NoAADPrefix,
			s.PlainColumns)
		return o, err
	}
	for _, name := range []string{"encryption", "plain-footer", "plain-columns", "store-aad-prefix"} {
		if v, ok := opts[name]; ok {
			return o, fault.Invalidf("parquet: option %s=%s: without key-file nothing is encrypted", name, v)
		}
	}
	return o, nil
}

// CopyOptions are the options that do not change pages.
type CopyOptions struct {
	GroupRows, GroupSize int64 // 0 if not set
	KeyValues            meta.KeyValueChanges
}

// ParseCopyOptions parses CopyOptions; other names an option that would change pages, "" if there is none.
func ParseCopyOptions(opts map[string]string) (a CopyOptions, other string, err error) {
	for _, key := range slices.Sorted(maps.Keys(opts)) {
		switch key {
		case "memory", "metadata", "drop-metadata", "row-group-rows", "row-group-size":
		default:
			return a, key, nil
		}
	}
	s, err := WriteTable.Parse(opts)
	if err != nil {
		return a, "", err
	}
	a.GroupRows, a.GroupSize = s.RowGroupRows, s.RowGroupSize
	a.KeyValues, err = meta.ParseKeyValueChanges(s.Metadata, s.DropMetadata)
	return a, "", err
}

const sortingForm = "COLUMN[:desc][:nulls-first], with commas between them,"

// setSorting parses sorting-columns. A column name that contains a comma, a colon or a quotation mark must be quoted.
func setSorting(to *[]SortColumn, v string) (wanted string) {
	var keys []SortColumn
	for more := v != ""; more; {
		var c SortColumn
		var ok bool
		if c.Column, v, ok = option.Unquote(v, ",:"); !ok {
			return sortingForm
		}
		var rest string
		rest, v, more = strings.Cut(v, ",")
		for _, w := range strings.Split(rest, ":")[1:] {
			switch strings.TrimSpace(w) {
			case "desc":
				c.Descending = true
			case "nulls-first":
				c.NullsFirst = true
			default:
				return sortingForm
			}
		}
		keys = append(keys, c)
	}
	*to = keys
	return ""
}

func sortingText(from *[]SortColumn) (string, bool) {
	var all []string
	for _, c := range *from {
		one := option.Quote(c.Column, ":")
		if c.Descending {
			one += ":desc"
		}
		if c.NullsFirst {
			one += ":nulls-first"
		}
		all = append(all, one)
	}
	return strings.Join(all, ","), len(all) > 0
}
