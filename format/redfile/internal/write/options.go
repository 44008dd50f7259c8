package write

import (
	"cmp"
	"math"
	"slices"

	"stoa/format/option"
	"stoa/format/redfile/internal/layout"
)

// Values of options, spelled as on the command line.
type (
	Form     string
	Compress string
	Encode   string
	Protocol string
	Split    string
)

// Options are the options of Create; they are documented at redfile.WriteOptions.
type Options struct {
	Generation    Form
	Compression   Compress
	Encoding      Encode
	Encodings     map[string]Encode
	RowGroupSize  int64
	RowGroupRows  int64
	PageSize      int
	Memory        int64
	NoCRC         bool
	NoIndex       bool
	Sync          int
	Protocol      Protocol
	NoArrowSchema bool
	Split         Split
}

// Table are the options of Create.
var Table = option.Table[Options]{Format: "redfile", For: "writing", Options: slices.Concat([]option.Option[Options]{
	option.Pick("generation", "form of the metadata: E as programs of 2013 read it, A as the first document has it "+
		"(default E)", func(o *Options) *Form { return &o.Generation }, "E", "A"),
	option.Pick("compression", "how pages are compressed (default snappy)",
		func(o *Options) *Compress { return &o.Compression }, "snappy", "gzip", "none"),
}, option.OfColumns([]option.Option[Encode]{
	option.Pick("encoding", "how INT32 and INT64 are encoded (default plain); encoding.COLUMN for one column",
		func(e *Encode) *Encode { return e }, "plain", "group-varint"),
}, func(o *Options) *Encode { return &o.Encoding }, func(o *Options) *map[string]Encode { return &o.Encodings },
), []option.Option[Options]{
	option.Size("row-group-size", "stored size of a row group (default 512MiB)",
		func(o *Options) *int64 { return &o.RowGroupSize }, 1, 1<<40),
	option.Int("row-group-rows", "N", "most rows of a row group (default: no limit)",
		func(o *Options) *int64 { return &o.RowGroupRows }, 1, math.MaxInt32),
	option.Size("page-size", "raw size of a page (default 8KiB)",
		func(o *Options) *int { return &o.PageSize }, 1, 1<<28),
	option.Size("memory", "how much of a row group is kept in memory; the rest goes to a temporary file "+
		"(default 256MiB)", func(o *Options) *int64 { return &o.Memory }, 0, 1<<40),
	option.Not("crc", "checksums of pages and of the metadata (default true)",
		func(o *Options) *bool { return &o.NoCRC }),
	option.Not("index", "an index page a chunk: where its pages are, their rows, min and max values "+
		"(default true)", func(o *Options) *bool { return &o.NoIndex }),
	option.Int("sync", "N", "a sync block after every row group and the metadata so far after every N-th, for "+
		"recovery (default 16; 0: neither)", func(o *Options) *int { return &o.Sync }, 0, 1<<30),
	option.Pick("protocol", "Thrift protocol of the metadata (default compact)",
		func(o *Options) *Protocol { return &o.Protocol }, "compact", "binary"),
	option.Not("arrow-schema", "keep the Arrow schema in the metadata (default true)",
		func(o *Options) *bool { return &o.NoArrowSchema }),
	option.Pick("split", "row-group: a directory with one data file a row group and the metadata in "+
		layout.MetadataFile+"; metadata: one data file and the metadata (default none)",
		func(o *Options) *Split { return &o.Split }, "none", "row-group", "metadata"),
})}

// createOptions are the parsed options of Create, with defaults.
type createOptions struct {
	gen       layout.Generation
	codec     layout.Compression
	encoding  layout.Encoding
	column    map[string]layout.Encoding
	groupSize int64
	groupRows int64
	pageSize  int
	memory    int64
	noCRC     bool
	noIndex   bool
	sync      int
	binary    bool
	NoArrow   bool
	split     string
}

var encodings = map[Encode]layout.Encoding{"": layout.Plain, "plain": layout.Plain,
	"group-varint": layout.GroupVarInt}

// ParseOptions parses the options of Create. An unknown key or value is an error of class Invalid.
func ParseOptions(opts map[string]string) (o createOptions, err error) {
	s, err := Table.Parse(opts)
	if err != nil {
		return o, err
	}
	o = createOptions{gen: layout.GenE, codec: layout.Snappy, encoding: encodings[s.Encoding],
		column:    map[string]layout.Encoding{},
		groupSize: cmp.Or(s.RowGroupSize, 512<<20), groupRows: cmp.Or(s.RowGroupRows, math.MaxInt32),
		pageSize: cmp.Or(s.PageSize, 8<<10), memory: option.Or(s.Memory, 256<<20), noCRC: s.NoCRC, noIndex: s.NoIndex,
		sync: option.Or(s.Sync, 16), binary: s.Protocol == "binary", NoArrow: s.NoArrowSchema,
		split: string(cmp.Or(s.Split, "none"))}
	if s.Generation == "A" {
		o.gen = layout.GenA
	}
	switch s.Compression {
	case "gzip":
		o.codec = layout.Gzip
	case "none":
		o.codec = layout.Uncompressed
	}
	for column, e := range s.Encodings {
		o.column[column] = encodings[e]
	}
	return o, nil
}
