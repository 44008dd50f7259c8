package write

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
)

// WriteKeys are the options of Create. Those of a column may be given for one column as KEY.COLUMN=VALUE.
var WriteKeys = []format.OptionKey{
	{Name: "version", Values: "1, 2", Help: "version of the file format (default 2)"},
	{Name: "checksums", Values: "true, false",
		Help: "whether blocks carry checksums (default true; version 1 has none)"},
	{Name: "encoding", Values: "plain, bitshuffle, rle, prefix, dict, group-varint",
		Help: "how values are encoded (default by type, as in Kudu); encoding.COLUMN for one column, as with " +
			"all but the last three"},
	{Name: "compression", Values: "none, lz4, snappy, zlib", Help: "how blocks are compressed (default none)"},
	{Name: "block-size", Values: "BYTES",
		Help: "size of data blocks and of a dictionary (default 256KiB, at least 512)"},
	{Name: "index-block-size", Values: "BYTES", Help: "size of index blocks (default 32KiB)"},
	{Name: "restart-interval", Values: "N",
		Help: "values from one restart point of prefix encoding to the next (default 16)"},
	{Name: "value-index", Values: "true, false",
		Help: "an index by value; the values must rise, and none be null (default false)"},
	{Name: "positional-index", Values: "true, false", Help: "an index by row number (default true)"},
	{Name: "coerce", Values: "refuse, us, floor", Help: "timestamps finer than a microsecond: us takes the " +
		"nearest microsecond, floor the one before (default refuse)"},
	{Name: "plain-metadata", Values: "true, false", Help: "leave out the metadata that keeps names and Arrow " +
		"types (default false); nothing in the files can then tell that two columns of the same type were " +
		"exchanged, or a file put in the place of another table's"},
	{Name: "layout", Values: "auto, dir", Help: "dir: a directory also for one column"},
	{Name: "null-structs", Values: "keep, flatten, refuse", Help: "keep: structs stay structs, which of them are " +
		"null is a column of its own; flatten: their fields become columns side by side, null where the struct is; " +
		"refuse: likewise, and a null struct is an error (default keep)"},
}

// CreateOptions are the options of Create, understood.
type CreateOptions struct {
	PlainMetadata, Dir bool
	Strict             bool                 // a null struct is an error
	all                []setting            // for every column
	column             map[string][]setting // for one
}

// Planned are the columns of a schema as the options have them, and whether its structs stay structs.
func Planned(sc *arrow.Schema, opts map[string]string) (leaves []Leaf, structs bool, err error) {
	keep := opts["null-structs"] == "" || opts["null-structs"] == "keep"
	structs = keep && HasStructs(sc)
	leaves, err = LeavesOf(sc, structs)
	return leaves, structs, err
}

// setting sets one option of a column.
type setting struct{ set func(*WriterOptions) }

// ParseCreateOptions reads the options; one that is not known, and one for a column that is not there, is Invalid.
func ParseCreateOptions(opts map[string]string, leaves []Leaf) (o CreateOptions, err error) {
	o.column = map[string][]setting{}
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		if err := o.parse(k, opts[k], leaves); err != nil {
			return o, err
		}
	}
	if opts["version"] == "1" && opts["checksums"] == "true" {
		return o, fault.Invalidf("cfile: options version=1 and checksums=true: version 1 has no checksums")
	}
	return o, nil
}

func (o *CreateOptions) parse(key, v string, leaves []Leaf) (err error) {
	switch key {
	case "plain-metadata":
		o.PlainMetadata, err = block.Pick(key, v, block.BoolNames)
		return err
	case "layout":
		o.Dir, err = block.Pick(key, v, map[string]bool{"auto": false, "dir": true})
		return err
	case "null-structs":
		o.Strict, err = block.Pick(key, v, map[string]bool{"keep": false, "flatten": false, "refuse": true})
		return err
	}
	name, column, one := strings.Cut(key, ".")
	var s setting
	if s.set, err = parseSetting(name, key, v); err != nil {
		return err
	}
	if !one {
		o.all = append(o.all, s)
		return nil
	}
	if !slices.ContainsFunc(leaves, func(l Leaf) bool { return l.Path == column }) {
		return fault.Invalidf("cfile: option %s=%s: there is no column %q", key, v, column)
	}
	o.column[column] = append(o.column[column], s)
	return nil
}

// parseSetting understands an option of a column.
func parseSetting(name, key, v string) (func(*WriterOptions), error) {
	switch name {
	case "version":
		n, err := block.Pick(key, v, map[string]int{"1": 1, "2": 2})
		return func(o *WriterOptions) { o.Version = n }, err
	case "checksums":
		on, err := block.Pick(key, v, block.BoolNames)
		return func(o *WriterOptions) { o.NoChecksums = !on }, err
	case "encoding":
		e, err := block.Pick(key, v, encodingsByName)
		return func(o *WriterOptions) { o.Encoding = e }, err
	case "compression":
		c, err := block.Pick(key, v, compressionsByName)
		return func(o *WriterOptions) { o.Compression = c }, err
	case "block-size":
		n, err := block.SizeOption(key, v, 1, 1<<30)
		return func(o *WriterOptions) { o.BlockSize = n }, err
	case "index-block-size":
		n, err := block.SizeOption(key, v, 1, 1<<30)
		return func(o *WriterOptions) { o.IndexBlockSize = n }, err
	case "restart-interval":
		n, err := block.Number(key, v, 1, math.MaxInt32)
		return func(o *WriterOptions) { o.RestartInterval = n }, err
	case "value-index":
		on, err := block.Pick(key, v, block.BoolNames)
		return func(o *WriterOptions) { o.ValueIndex = on }, err
	case "coerce":
		c, err := block.Pick(key, v, map[string]Coercion{"refuse": Refuse, "us": ToNearest, "floor": ToFloor})
		return func(o *WriterOptions) { o.Coerce = c }, err
	case "positional-index":
		on, err := block.Pick(key, v, block.BoolNames)
		return func(o *WriterOptions) { o.NoPositionalIndex = !on }, err
	}
	return nil, fault.Invalidf("cfile: there is no option %q for writing", key)
}

var encodingsByName = map[string]block.Encoding{"plain": block.Plain, "prefix": block.Prefix, "rle": block.RLE,
	"dict": block.Dict, "bitshuffle": block.BitShuffle, "group-varint": block.GroupVarint}
var compressionsByName = map[string]block.Compression{"none": block.NoCompression, "lz4": block.LZ4,
	"snappy": block.Snappy, "zlib": block.Zlib}

// ForLeaf is the options of one column: those for all columns, its own, and for what they leave open its
// field's metadata, where that makes sense for the type. Of several columns only those take an encoding for all
// for whose type it is defined.
func (o *CreateOptions) ForLeaf(l *Leaf, several bool) WriterOptions {
	var w WriterOptions
	for _, s := range o.all {
		s.set(&w)
	}
	if (several || l.Validity) && w.Encoding != block.AutoEncoding && block.Allowed(l.Col.Type, w.Encoding) != nil {
		w.Encoding = block.AutoEncoding
	}
	if l.Validity { // which is no key, and is read by row
		w.ValueIndex, w.NoPositionalIndex = false, false
	}
	for _, s := range o.column[l.Path] {
		s.set(&w)
	}
	l.suggest(&w)
	return w
}

// suggest fills in what the field's metadata says (see MetaEncoding). It may come from elsewhere and mean
// something else, so what does not fit is skipped.
func (l *Leaf) suggest(w *WriterOptions) {
	m := l.field.Metadata
	if s, _ := m.GetValue(block.MetaEncoding); w.Encoding == block.AutoEncoding {
		e, ok := encodingsByName[s]
		if ok && block.Allowed(l.Col.Type, e) == nil && (e != block.GroupVarint || w.Version == 1) {
			w.Encoding = e
		}
	}
	if s, _ := m.GetValue(block.MetaCompression); w.Compression == block.DefaultCompression {
		w.Compression = compressionsByName[s]
	}
	if s, ok := m.GetValue(MetaBlockSize); ok && w.BlockSize == 0 {
		if n, err := block.Number(MetaBlockSize, s, 1, 1<<30); err == nil {
			w.BlockSize = n
		}
	}
}

// Unused is an encoding for all columns that is defined for none, "" if there is no such.
func (o *CreateOptions) Unused(leaves []Leaf) string {
	var w WriterOptions
	for _, s := range o.all {
		s.set(&w)
	}
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

// Alters is format.Format.Alters: coerce=us and coerce=floor drop parts of a microsecond. Names are those of
// the table's own columns.
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
		case out[k].Option != a.Option: // fields of a struct, each in its own way
			out[k].Unit, out[k].Option = 0, "coerce"
		}
	}
	return out
}
