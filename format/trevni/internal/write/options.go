package write

import (
	"maps"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/layout"
)

var Keys = []format.OptionKey{
	{Name: "codec", Values: "null, deflate, snappy, bzip2", Help: "compression of blocks (default null)"},
	{Name: "checksum", Values: "crc32, null", Help: "checksum of blocks (default crc32)"},
	{Name: "block-size", Values: "BYTES",
		Help: "raw bytes after which a block ends at the next row (default 64KiB, at most 1GiB)"},
	{Name: "file-size", Values: "BYTES",
		Help: "stored bytes after which a new file begins, and the output becomes a directory (default 1GiB)"},
	{Name: "first-values", Values: "all, NAME,NAME,…",
		Help: "columns whose blocks keep their first value, so that they can be searched if they are sorted"},
	{Name: "arrow-schema", Values: "true, false", Help: "keep the Arrow schema in the file's metadata (default true)"},
}

var AvroKeys = append(slices.Clone(Keys),
	format.OptionKey{Name: "version", Values: "1, 2",
		Help: "of the format: 2 (default) codes runs of equal array lengths; Avro before 1.7.5 reads only 1"})

// writeOptions are the options of Create, understood.
type writeOptions struct {
	dialect     layout.Dialect
	version     byte
	codec       string
	kind        layout.Codec
	summed      bool
	blockSize   int
	fileSize    int64
	firstAll    bool
	first       []string
	ArrowSchema bool
}

func ParseOptions(d layout.Dialect, opts map[string]string) (o writeOptions, err error) {
	o = writeOptions{dialect: d, version: 1, codec: "null", summed: true, blockSize: 64 << 10, fileSize: 1 << 30,
		ArrowSchema: true}
	if d == layout.Avro {
		o.version = 2
	}
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		if err := o.set(k, opts[k]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *writeOptions) set(key, v string) (err error) {
	bad := func(wanted string) error { return fault.Invalidf("trevni: option %s=%s: %s is wanted", key, v, wanted) }
	switch {
	case key == "codec":
		if o.kind, _ = layout.CodecByName(v); v != "null" && v != "deflate" && v != "snappy" && v != "bzip2" {
			return bad("one of null, deflate, snappy, bzip2")
		}
		o.codec = v
	case key == "checksum":
		if o.summed = v == "crc32"; v != "crc32" && v != "null" {
			return bad("crc32 or null")
		}
	case key == "block-size":
		n, ok := format.ParseSize(v)
		if o.blockSize = int(n); !ok || n < 1 || n > 1<<30 {
			return bad("a number of bytes up to 1073741824, as 65536 or 64KiB,")
		}
	case key == "file-size":
		var ok bool
		if o.fileSize, ok = format.ParseSize(v); !ok || o.fileSize < 1 {
			return bad("a number of bytes, as 1073741824 or 1GiB,")
		}
	case key == "first-values":
		if o.firstAll = v == "all"; !o.firstAll {
			o.first = strings.Split(v, ",")
		}
	case key == "arrow-schema":
		if o.ArrowSchema = v == "true"; v != "true" && v != "false" {
			return bad("true or false")
		}
	case key == "version" && o.dialect == layout.Avro:
		if v != "1" && v != "2" {
			return bad("1 or 2")
		}
		o.version = v[0] - '0'
	default:
		return fault.Invalidf("trevni: there is no option %q for writing", key)
	}
	return nil
}

// keeps reports whether the descriptors of column name are to hold first values.
func (o *writeOptions) keeps(name string) bool { return o.firstAll || slices.Contains(o.first, name) }
