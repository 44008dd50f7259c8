package file

import (
	"context"
	"path"
	"strconv"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
)

// OpenAgreed opens a file that does not contradict itself about its rows, nor, unless it is told not to verify, about
// the names of its columns.
func OpenAgreed(ctx context.Context, t format.Target, o format.OpenOptions) (*File, error) {
	r, err := Open(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if err = r.RowsAgree(); err == nil && !o.NoVerify {
		err = r.namesAgree()
	}
	if err != nil {
		r.Src.Close()
		return nil, err
	}
	return r, nil
}

// RowsAgree holds the number of rows of the file against those of its row groups. A _common_metadata has the
// schema, and no row groups by its meaning; what its writer put there as the number of rows is not the file's.
func (r *File) RowsAgree() error {
	if len(r.Footer.RowGroups) == 0 && path.Base(r.Target.Name) == "_common_metadata" {
		return nil
	}
	rows := int64(0)
	for _, g := range r.Footer.RowGroups {
		rows += g.NumRows
	}
	if rows == r.Footer.NumRows {
		return nil
	}
	return fault.Corruptf(r.FooterAt, "footer/metadata.num_rows", "%d, but the row groups have %d",
		r.Footer.NumRows, rows)
}

// ReadKeys are the options of reading.
var ReadKeys = []format.OptionKey{
	{Name: "arrow-schema", Values: "use|ignore",
		Help: "whether the types are those of the Arrow schema that the file may carry (default), or Parquet's own"},
	{Name: "key-file", Values: "FILE", Help: "the keys of an encrypted file: lines `footer KEY`, `column PATH " +
		"KEY`, `key ID KEY`, `aad-prefix TEXT`; a key in hexadecimal digits, or after base64: or text:"},
	{Name: "schema", Values: "FILE", Help: "recover: the columns of a file whose footer is lost are those of " +
		"this whole Parquet file, by the same writer"},
	{Name: "row-group-rows", Values: "N", Help: "recover: the row groups of a file whose footer is lost have N " +
		"rows (the last may have fewer), where its pages do not tell"},
}

// Open opens a file whose footer can be read.
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

// New is a file of which nothing was read.
func New(ctx context.Context, t format.Target, o format.OpenOptions) (*File, error) {
	if err := meta.CheckOpts(o.Opts, ReadKeys); err != nil {
		return nil, err
	}
	use := o.Opts["arrow-schema"]
	if use != "" && use != "use" && use != "ignore" {
		return nil, fault.Invalidf("arrow-schema=%s: it is use or ignore", use)
	}
	var keys *meta.Keyring
	if name := o.Opts["key-file"]; name != "" {
		var err error
		if keys, err = meta.ReadKeyring(name); err != nil {
			return nil, err
		}
	}
	rows := int64(0)
	if v := o.Opts["row-group-rows"]; v != "" {
		var err error
		if rows, err = strconv.ParseInt(v, 10, 64); err != nil || rows <= 0 {
			return nil, fault.Invalidf("row-group-rows=%s: it is a number of rows", v)
		}
	}
	src, base, size, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &File{Src: src, Target: t, Base: base, Size: size, Limits: o.Limits.WithDefaults(),
		ignoreSchema: use == "ignore", GroupRows: rows,
		keys: keys, Tracer: o.Tracer, NoVerify: o.NoVerify}, nil
}
