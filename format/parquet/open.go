package parquet

import (
	"context"
	"path"
	"strconv"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
)

// openAgreed opens a file that does not contradict itself about its rows, nor, unless it is told not to verify, about
// the names of its columns.
func openAgreed(ctx context.Context, t format.Target, o format.OpenOptions) (*File, error) {
	r, err := openFile(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if err = r.rowsAgree(); err == nil && !o.NoVerify {
		err = r.namesAgree()
	}
	if err != nil {
		r.src.Close()
		return nil, err
	}
	return r, nil
}

// rowsAgree holds the number of rows of the file against those of its row groups. A _common_metadata has the
// schema, and no row groups by its meaning; what its writer put there as the number of rows is not the file's.
func (r *File) rowsAgree() error {
	if len(r.meta.RowGroups) == 0 && path.Base(r.target.Name) == "_common_metadata" {
		return nil
	}
	rows := int64(0)
	for _, g := range r.meta.RowGroups {
		rows += g.NumRows
	}
	if rows == r.meta.NumRows {
		return nil
	}
	return fault.Corruptf(r.footer, "footer/metadata.num_rows", "%d, but the row groups have %d", r.meta.NumRows, rows)
}

// readKeys are the options of reading.
var readKeys = []format.OptionKey{
	{Name: "arrow-schema", Values: "use|ignore",
		Help: "whether the types are those of the Arrow schema that the file may carry (default), or Parquet's own"},
	{Name: "key-file", Values: "FILE", Help: "the keys of an encrypted file: lines `footer KEY`, `column PATH " +
		"KEY`, `key ID KEY`, `aad-prefix TEXT`; a key in hexadecimal digits, or after base64: or text:"},
	{Name: "schema", Values: "FILE", Help: "recover: the columns of a file whose footer is lost are those of " +
		"this whole Parquet file, by the same writer"},
	{Name: "row-group-rows", Values: "N", Help: "recover: the row groups of a file whose footer is lost have N " +
		"rows (the last may have fewer), where its pages do not tell"},
}

// openFile opens a file whose footer can be read.
func openFile(ctx context.Context, t format.Target, o format.OpenOptions) (*File, error) {
	r, err := newFile(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if err := r.start(ctx); err != nil {
		r.src.Close()
		return nil, err
	}
	return r, nil
}

// newFile is a file of which nothing was read.
func newFile(ctx context.Context, t format.Target, o format.OpenOptions) (*File, error) {
	if err := meta.CheckOpts(o.Opts, readKeys); err != nil {
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
	return &File{src: src, target: t, base: base, size: size, limits: o.Limits.WithDefaults(),
		ignoreSchema: use == "ignore", groupRows: rows,
		keys: keys, tracer: o.Tracer, noVerify: o.NoVerify}, nil
}
