package write

import (
	"maps"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
)

// Keys are the options of Create.
var Keys = []format.OptionKey{
	{Name: "generation", Values: "E, A",
		Help: "form of the metadata: E as programs of 2013 read it, A as the first document has it (default E)"},
	{Name: "compression", Values: "snappy, gzip, none", Help: "how pages are compressed (default snappy)"},
	{Name: "encoding", Values: "plain, group-varint",
		Help: "how INT32 and INT64 are encoded (default plain); encoding.COLUMN for one column"},
	{Name: "row-group-size", Values: "BYTES", Help: "stored size of a row group (default 512MiB)"},
	{Name: "row-group-rows", Values: "N", Help: "most rows of a row group (default: no limit)"},
	{Name: "page-size", Values: "BYTES", Help: "raw size of a page (default 8KiB)"},
	{Name: "memory", Values: "BYTES", Help: "how much of a row group is kept in memory; the rest goes to a " +
		"temporary file (default 256MiB)"},
	{Name: "crc", Values: "true, false", Help: "checksums of pages and of the metadata (default true)"},
	{Name: "index", Values: "true, false",
		Help: "an index page a chunk: where its pages are, their rows, least and greatest values (default true)"},
	{Name: "sync", Values: "N", Help: "a sync block behind every row group and the metadata so far behind every " +
		"N-th, for recovery (default 16; 0: neither)"},
	{Name: "protocol", Values: "compact, binary", Help: "Thrift protocol of the metadata (default compact)"},
	{Name: "arrow-schema", Values: "true, false", Help: "keep the Arrow schema in the metadata (default true)"},
	{Name: "split", Values: "none, row-group, metadata",
		Help: "row-group: a directory with one data file a row group and the metadata in " + layout.MetadataFile +
			"; metadata: one data file and the metadata (default none)"},
}

// createOptions are the options of Create, understood.
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

var encodingsByName = map[string]layout.Encoding{"plain": layout.Plain, "group-varint": layout.GroupVarInt}

func ParseOptions(opts map[string]string) (o createOptions, err error) {
	o = createOptions{gen: layout.GenE, codec: layout.Snappy, column: map[string]layout.Encoding{},
		groupSize: 512 << 20,
		groupRows: 1<<31 - 1, pageSize: 8 << 10, memory: 256 << 20, sync: 16, split: "none"}
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		if err := o.set(k, opts[k]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *createOptions) set(key, v string) (err error) {
	on, n := false, int64(0)
	if column, ok := strings.CutPrefix(key, "encoding."); ok {
		o.column[column], err = layout.Pick(key, v, encodingsByName)
		return err
	}
	switch key {
	case "generation":
		o.gen, err = layout.Pick(key, strings.ToUpper(v),
			map[string]layout.Generation{"A": layout.GenA, "E": layout.GenE})
	case "compression":
		o.codec, err = layout.Pick(key, v,
			map[string]layout.Compression{"none": layout.Uncompressed, "snappy": layout.Snappy, "gzip": layout.Gzip})
	case "encoding":
		o.encoding, err = layout.Pick(key, v, encodingsByName)
	case "row-group-size":
		o.groupSize, err = layout.BytesOf(key, v, 1, 1<<40)
	case "row-group-rows":
		o.groupRows, err = layout.Number(key, v, 1, 1<<31-1)
	case "page-size":
		n, err = layout.BytesOf(key, v, 1, 1<<28)
		o.pageSize = int(n)
	case "memory":
		o.memory, err = layout.BytesOf(key, v, 0, 1<<40)
	case "crc":
		on, err = layout.Pick(key, v, layout.BoolNames)
		o.noCRC = !on
	case "index":
		on, err = layout.Pick(key, v, layout.BoolNames)
		o.noIndex = !on
	case "sync":
		n, err = layout.Number(key, v, 0, 1<<30)
		o.sync = int(n)
	case "protocol":
		o.binary, err = layout.Pick(key, v, map[string]bool{"compact": false, "binary": true})
	case "arrow-schema":
		on, err = layout.Pick(key, v, layout.BoolNames)
		o.NoArrow = !on
	case "split":
		o.split, err = layout.Pick(key, v,
			map[string]string{"none": "none", "row-group": "row-group", "metadata": "metadata"})
	default:
		err = fault.Invalidf("redfile: there is no option %q for writing", key)
	}
	return err
}
