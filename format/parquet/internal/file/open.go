package file

import (
	"context"
	"math"
	"path"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/option"
	"stoa/format/parquet/internal/meta"
)

// OpenConsistent opens a file whose footer does not contradict itself about the number of rows or, unless o.NoVerify is
// set, about the names of columns.
func OpenConsistent(ctx context.Context, t format.Target, o format.OpenOptions) (*File, error) {
	r, err := Open(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if err = r.CheckRows(); err == nil && !o.NoVerify {
		err = r.checkPaths()
	}
	if err != nil {
		r.Src.Close()
		return nil, err
	}
	return r, nil
}

// CheckRows compares the file's number of rows with the sum over its row groups. A _common_metadata file has a schema
// and no row groups; the number of rows in it counts the rows of other files.
func (r *File) CheckRows() error {
	if len(r.Footer.RowGroups) == 0 && path.Base(r.Target.Name) == "_common_metadata" {
		return nil
	}
	rows := r.Footer.GroupRows()
	if rows == r.Footer.NumRows {
		return nil
	}
	return fault.Corruptf(r.FooterAt, "footer/metadata.num_rows", "%d, but the row groups have %d",
		r.Footer.NumRows, rows)
}

// ArrowSchema selects whether types come from the Arrow schema that a file may contain.
type ArrowSchema string

// Int96 selects the unit in which INT96 is read.
type Int96 string

// ReadOptions are the options of reading; they are documented in package parquet.
type ReadOptions struct {
	ArrowSchema  ArrowSchema
	Int96        Int96
	KeyFile      string
	Schema       string
	RowGroupRows int64
}

// ReadTable is the options table of ReadOptions.
var ReadTable = option.Table[ReadOptions]{Format: "parquet", For: "reading", Options: []option.Option[ReadOptions]{
	option.Pick("arrow-schema", "whether the types are those of the Arrow schema that the file may carry (default), "+
		"or Parquet's own", func(o *ReadOptions) *ArrowSchema { return &o.ArrowSchema }, "use", "ignore"),
	option.Pick("int96", "the unit of the timestamps that INT96 is read as, which have 64 bits: nanoseconds "+
		"(default), of the years 1677 to 2262, or microseconds, which cut off what is finer",
		func(o *ReadOptions) *Int96 { return &o.Int96 }, "ns", "us"),
	option.Text("key-file", "FILE", "the keys of an encrypted file: lines `footer KEY`, `column PATH KEY`, `key ID "+
		"KEY`, `aad-prefix TEXT`; a key in hexadecimal digits, or after base64: or text:",
		func(o *ReadOptions) *string { return &o.KeyFile }),
	option.Text("schema", "FILE", "recover: the columns of a file whose footer is lost are those of this intact "+
		"Parquet file, by the same writer", func(o *ReadOptions) *string { return &o.Schema }),
	option.Int("row-group-rows", "N", "recover: the row groups of a file whose footer is lost have N rows (the last "+
		"may have fewer), where its pages do not say", func(o *ReadOptions) *int64 { return &o.RowGroupRows },
		1, math.MaxInt64),
}}

// int96Units maps the option's values to Arrow's units.
var int96Units = map[Int96]arrow.TimeUnit{"": arrow.Nanosecond, "ns": arrow.Nanosecond, "us": arrow.Microsecond}

// Open opens a file. It fails if the footer cannot be read.
func Open(ctx context.Context, t format.Target, o format.OpenOptions) (*File, error) {
	r, err := New(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if err := r.Start(ctx); err != nil {
		r.Src.Close()
		return nil, err
	}
	return r, nil
}

// New returns a file from which nothing has been read yet.
func New(ctx context.Context, t format.Target, o format.OpenOptions) (*File, error) {
	opts, err := ReadTable.Parse(o.Opts)
	if err != nil {
		return nil, err
	}
	var keys *meta.Keyring
	if opts.KeyFile != "" {
		if keys, err = meta.ReadKeyring(opts.KeyFile); err != nil {
			return nil, err
		}
	}
	src, base, size, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &File{Src: src, Target: t, Base: base, Size: size, Limits: o.Limits.WithDefaults(),
		ignoreSchema: opts.ArrowSchema == "ignore", Int96: int96Units[opts.Int96], GroupRows: opts.RowGroupRows,
		keys: keys, KeyFile: opts.KeyFile, Tracer: o.Tracer, NoVerify: o.NoVerify}, nil
}
