package write

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/option"
)

// Types of the values of options.
type (
	Encode      = columnfile.Encode
	Compress    = columnfile.Compress
	Coerce      string
	Layout      string
	NullStructs string
)

// ColumnOptions are those of one column, or of all; package cfile documents them.
type ColumnOptions struct {
	Version         int
	Checksums       *bool
	Encoding        Encode
	Compression     Compress
	BlockSize       int
	IndexBlockSize  int
	RestartInterval int
	ValueIndex      *bool
	PositionalIndex *bool
	Coerce          Coerce
}

// Options are those of Create; package cfile documents them.
type Options struct {
	All           ColumnOptions
	Columns       map[string]ColumnOptions
	PlainMetadata bool
	Layout        Layout
	NullStructs   NullStructs
}

var columnOptions = []option.Option[ColumnOptions]{
	option.Int("version", "1, 2", "version of the file format (default 2)",
		func(o *ColumnOptions) *int { return &o.Version }, 1, 2),
	option.Tri("checksums", "whether blocks carry checksums (default true; version 1 has none)",
		func(o *ColumnOptions) **bool { return &o.Checksums }),
	option.Pick("encoding", "how values are encoded (default by type, as in Kudu); encoding.COLUMN for one column, as "+
		"with all but the last three", func(o *ColumnOptions) *Encode { return &o.Encoding },
		"plain", "bitshuffle", "rle", "prefix", "dict", "group-varint"),
	option.Pick("compression", "how blocks are compressed (default none)",
		func(o *ColumnOptions) *Compress { return &o.Compression }, "none", "lz4", "snappy", "zlib"),
	option.Size("block-size", "size of data blocks and of a dictionary (default 256KiB, at least 512)",
		func(o *ColumnOptions) *int { return &o.BlockSize }, 1, 1<<30),
	option.Size("index-block-size", "size of index blocks (default 32KiB)",
		func(o *ColumnOptions) *int { return &o.IndexBlockSize }, 1, 1<<30),
	option.Int("restart-interval", "N", "values from one restart point of prefix encoding to the next (default 16)",
		func(o *ColumnOptions) *int { return &o.RestartInterval }, 1, math.MaxInt32),
	option.Tri("value-index", "an index by value; the values must rise, and none be null (default false)",
		func(o *ColumnOptions) **bool { return &o.ValueIndex }),
	option.Tri("positional-index", "an index by row number (default true)",
		func(o *ColumnOptions) **bool { return &o.PositionalIndex }),
	option.Pick("coerce", "timestamps finer than a microsecond: us takes the nearest microsecond, floor the one "+
		"before (default refuse)", func(o *ColumnOptions) *Coerce { return &o.Coerce }, "refuse", "us", "floor"),
}

// Table are the options of Create. Those of a column may be given for one column as KEY.COLUMN=VALUE.
var Table = option.Table[Options]{Format: "cfile", For: "writing", Options: append(option.OfColumns(columnOptions,
	func(o *Options) *ColumnOptions { return &o.All },
	func(o *Options) *map[string]ColumnOptions { return &o.Columns }),
	option.Bool("plain-metadata", "leave out the metadata that keeps names and Arrow types (default false); nothing "+
		"in the files can then tell that two columns of the same type were exchanged, or a file put in the place of "+
		"another table's", func(o *Options) *bool { return &o.PlainMetadata }),
	option.Pick("layout", "dir: a directory also for one column", func(o *Options) *Layout { return &o.Layout },
		"auto", "dir"),
	option.Pick("null-structs", "keep: structs stay structs, which of them are null is a column of its own; flatten: "+
		"their fields become columns side by side, null where the struct is; refuse: likewise, and a null struct is "+
		"an error (default keep)",
		func(o *Options) *NullStructs { return &o.NullStructs }, "keep", "flatten", "refuse"),
)}

// CreateOptions are the parsed options of Create.
type CreateOptions struct {
	PlainMetadata, Dir bool
	Strict             bool                     // refuse null structs
	all                ColumnOptions            // for every column
	column             map[string]ColumnOptions // for single columns; these take precedence
}

// Planned returns the columns that a schema is written as with the given options, and whether its structs stay structs.
func Planned(sc *arrow.Schema, opts map[string]string) (leaves []Leaf, structs bool, err error) {
	keep := opts["null-structs"] == "" || opts["null-structs"] == "keep"
	structs = keep && HasStructs(sc)
	leaves, err = LeavesOf(sc, structs)
	return leaves, structs, err
}

// ParseCreateOptions parses the options. An unknown option, or one for a column that does not exist, is Invalid.
func ParseCreateOptions(opts map[string]string, leaves []Leaf) (CreateOptions, error) {
	s, err := Table.Parse(opts)
	o := CreateOptions{PlainMetadata: s.PlainMetadata, Dir: s.Layout == "dir", Strict: s.NullStructs == "refuse",
		all: s.All, column: s.Columns}
	if err != nil {
		return o, err
	}
	for _, column := range slices.Sorted(maps.Keys(s.Columns)) {
		if !slices.ContainsFunc(leaves, func(l Leaf) bool { return l.Path == column }) {
			return o, fault.Invalidf("cfile: there is no column %q, for which there are options", column)
		}
	}
	if s.All.Version == 1 && s.All.Checksums != nil && *s.All.Checksums {
		return o, fault.Invalidf("cfile: options version=1 and checksums=true: version 1 has no checksums")
	}
	return o, nil
}

// apply sets in w what the options state.
func (c *ColumnOptions) apply(w *WriterOptions) {
	w.Version = cmp.Or(c.Version, w.Version)
	w.BlockSize, w.IndexBlockSize = cmp.Or(c.BlockSize, w.BlockSize), cmp.Or(c.IndexBlockSize, w.IndexBlockSize)
	w.RestartInterval = cmp.Or(c.RestartInterval, w.RestartInterval)
	if c.Checksums != nil {
		w.NoChecksums = !*c.Checksums
	}
	if c.ValueIndex != nil {
		w.ValueIndex = *c.ValueIndex
	}
	if c.PositionalIndex != nil {
		w.NoPositionalIndex = !*c.PositionalIndex
	}
	if c.Encoding != "" {
		w.Encoding = block.EncodingByName(string(c.Encoding))
	}
	if c.Compression != "" {
		w.Compression = block.CompressionByName(string(c.Compression))
	}
	if c.Coerce != "" {
		w.Coerce = map[Coerce]Coercion{"refuse": Refuse, "us": ToNearest, "floor": ToFloor}[c.Coerce]
	}
}

// ForLeaf returns the options of one column. The column's own options take precedence over those for all columns, and
// these over the metadata of its field, which is used where it fits the type. If there are several columns, an encoding
// for all columns applies only to those whose type supports it.
func (o *CreateOptions) ForLeaf(l *Leaf, several bool) WriterOptions {
	var w WriterOptions
	o.all.apply(&w)
	if (several || l.Validity) && w.Encoding != block.AutoEncoding && block.Allowed(l.Col.Type, w.Encoding) != nil {
		w.Encoding = block.AutoEncoding
	}
	if l.Validity { // a validity column cannot be a key, and is read by row number
		w.ValueIndex, w.NoPositionalIndex = false, false
	}
	c := o.column[l.Path]
	c.apply(&w)
	l.suggest(&w)
	return w
}

// suggest sets options that are still open from the field's metadata (see block.MetaEncoding). The metadata may come
// from another format, so values that do not fit are ignored.
func (l *Leaf) suggest(w *WriterOptions) {
	m := l.field.Metadata
	if s, _ := m.GetValue(block.MetaEncoding); w.Encoding == block.AutoEncoding {
		e := block.EncodingByName(s)
		if block.Allowed(l.Col.Type, e) == nil && (e != block.GroupVarint || w.Version == 1) {
			w.Encoding = e
		}
	}
	if s, _ := m.GetValue(block.MetaCompression); w.Compression == block.DefaultCompression {
		w.Compression = block.CompressionByName(s)
	}
	if s, ok := m.GetValue(MetaBlockSize); ok && w.BlockSize == 0 {
		if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= 1<<30 {
			w.BlockSize = n
		}
	}
}

// Unused returns the encoding set for all columns if no column supports it, else "".
func (o *CreateOptions) Unused(leaves []Leaf) string {
	var w WriterOptions
	o.all.apply(&w)
	for i := range leaves {
		if block.Allowed(leaves[i].Col.Type, w.Encoding) == nil {
			return ""
		}
	}
	if w.Encoding == block.AutoEncoding || len(leaves) == 0 {
		return ""
	}
	return w.Encoding.String()
}

// Alters is format.Format.Alters: coerce=us and coerce=floor drop fractions of a microsecond. The names are those of
// top-level columns.
func Alters(sc *arrow.Schema, o format.WriteOptions) (out []format.Alteration) {
	leaves, _, err := Planned(sc, o.Opts)
	if err != nil {
		return nil
	}
	opts, err := ParseCreateOptions(o.Opts, leaves)
	if err != nil {
		return nil
	}
	for i := range leaves {
		l := &leaves[i]
		t := storage(l.field.Type)
		if list, ok := t.(arrow.ListLikeType); ok {
			t = storage(list.Elem())
		}
		coerce := opts.ForLeaf(l, len(leaves) > 1).Coerce
		if !format.Finer(t, time.Microsecond) || coerce == Refuse {
			continue
		}
		a := format.Rounding(sc.Field(l.Steps[0]).Name, "coerce="+coerce.String(), time.Microsecond,
			coerce == ToNearest)
		k := slices.IndexFunc(out, func(x format.Alteration) bool { return x.Column == a.Column })
		switch {
		case k < 0:
			out = append(out, a)
		case out[k].Option != a.Option: // fields of one struct are altered in different ways
			out[k].Unit, out[k].Option = 0, "coerce"
		}
	}
	return out
}
