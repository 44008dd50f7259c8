package write

import (
	"cmp"
	"slices"

	"stoa/format/option"
	"stoa/format/trevni/internal/layout"
)

// Named values of options.
type (
	Codec    string
	Checksum string
)

// Options are the options of Create; package trevni documents them.
type Options struct {
	Codec         Codec
	Checksum      Checksum
	BlockSize     int
	FileSize      int64
	FirstValues   []string
	NoArrowSchema bool
}

// AvroOptions are the options of Create in Avro's dialect.
type AvroOptions struct {
	Options
	Version int
}

// Table are the options of Create, and AvroTable those of Avro's dialect.
var (
	Table = option.Table[Options]{Format: "trevni", For: "writing", Options: []option.Option[Options]{
		option.Pick("codec", "compression of blocks (default null)", func(o *Options) *Codec { return &o.Codec },
			"null", "deflate", "snappy", "bzip2"),
		option.Pick("checksum", "checksum of blocks (default crc32)",
			func(o *Options) *Checksum { return &o.Checksum }, "crc32", "null"),
		option.Size("block-size", "raw bytes after which a block ends at the next row (default 64KiB, at most 1GiB)",
			func(o *Options) *int { return &o.BlockSize }, 1, 1<<30),
		option.Size("file-size", "stored bytes after which a new file begins, and the output becomes a directory "+
			"(default 1GiB)", func(o *Options) *int64 { return &o.FileSize }, 1, 1<<62),
		option.List("first-values", "all, NAME,NAME,…", "columns whose blocks keep their first value, so that they "+
			"can be searched if they are sorted", func(o *Options) *[]string { return &o.FirstValues }),
		option.Not("arrow-schema", "keep the Arrow schema in the file's metadata (default true)",
			func(o *Options) *bool { return &o.NoArrowSchema }),
	}}
	AvroTable = option.Table[AvroOptions]{Format: "trevni-avro", For: "writing", Options: append(
		option.Within(Table.Options, func(o *AvroOptions) *Options { return &o.Options }),
		option.Int("version", "1, 2", "of the format: 2 (default) codes runs of equal array lengths; Avro before "+
			"1.7.5 reads only 1", func(o *AvroOptions) *int { return &o.Version }, 1, 2))}
)

// writeOptions are the parsed options of Create, with defaults.
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

// ParseOptions parses the options of Create for a dialect. An unknown key or value is an error of class Invalid.
func ParseOptions(d layout.Dialect, opts map[string]string) (o writeOptions, err error) {
	s, version := AvroOptions{}, 1
	if d == layout.Avro {
		s, err = AvroTable.Parse(opts)
		version = cmp.Or(s.Version, 2)
	} else {
		s.Options, err = Table.Parse(opts)
	}
	if err != nil {
		return o, err
	}
	o = writeOptions{dialect: d, version: byte(version), codec: string(cmp.Or(s.Codec, "null")),
		summed: s.Checksum != "null", blockSize: cmp.Or(s.BlockSize, 64<<10), fileSize: cmp.Or(s.FileSize, 1<<30),
		firstAll: slices.Equal(s.FirstValues, []string{"all"}), first: s.FirstValues, ArrowSchema: !s.NoArrowSchema}
	if o.firstAll {
		o.first = nil
	}
	o.kind, _ = layout.CodecByName(o.codec)
	return o, nil
}

// keeps reports whether the descriptors of the column name have first values.
func (o *writeOptions) keeps(name string) bool { return o.firstAll || slices.Contains(o.first, name) }
