package parquet

import (
	"context"
	"io"
	"iter"
	"maps"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/parquet/internal/describe"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/format/parquet/internal/verify"
	"stoa/format/parquet/internal/write"
	"stoa/store"
)

// Format is format "parquet".
var Format = format.Format{
	Magics: []format.Magic{
		{Off: 0, Bytes: "PAR1", Name: "a Parquet file that is damaged at its end"},
		{Off: 0, Bytes: "PARE", Name: "an encrypted Parquet file"},
	},
	Name:       "parquet",
	Title:      "Apache Parquet file",
	Extensions: []string{".parquet", ".parq", ".pq"},
	Probe:      probe,
	List:       list,
	Open:       open,
	Create:     write.Create,
	Reread:     reread,
	Describe:   describe.File,
	Verify:     verify.File,
	Recover:    recoverReader,
	Copy:       copyPages,
	Unchecked:  verify.Unchecked,
	Bounds:     true,
	WriteKeys:  write.WriteTable.Keys(),
	ReadKeys:   file.ReadTable.Keys(),
	Codes:      verify.Codes,

	BackupMetadata: ".kudu-metadata.json", // Kudu's backup job writes Parquet
}

// probe looks for the magic at the start and at the end of the file.
func probe(ctx context.Context, t format.Target) (format.Match, error) {
	src, err := t.Tree.Open(ctx, t.Name)
	if err != nil {
		return format.No, err
	}
	defer src.Close()
	var b [4]byte
	n, err := src.ReadAt(ctx, b[:], t.At.From)
	if err != nil && err != io.EOF {
		return format.No, err
	}
	if s := string(b[:n]); s == meta.Magic || s == meta.Encrypted {
		return format.Certain, nil
	}
	if store.Unsized(src) {
		return format.No, nil
	}
	end := src.Size()
	if t.At.Len() > 0 {
		end = t.At.To
	}
	if end-t.At.From < 12 {
		return format.No, nil
	}
	if n, err = src.ReadAt(ctx, b[:], end-4); err != nil && err != io.EOF {
		return format.No, err
	}
	if s := string(b[:n]); s == meta.Magic || s == meta.Encrypted { // the start of the file may be damaged
		return format.Likely, nil
	}
	return format.No, nil
}

func list(ctx context.Context, t format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		r, err := file.OpenConsistent(ctx, t, format.OpenOptions{Limits: t.Limits, Opts: t.Opts})
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		defer r.Close()
		yield(format.Entry{Kind: "Parquet file", Rows: r.Footer.NumRows, Bytes: r.Size,
			Meta: read.NewReader(r, nil).Meta(), Findings: verify.PartFindings(r)}, nil)
	}
}

// reread implements format.Format.Reread: encrypted output is read back with the keys that encrypted it.
func reread(_ *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	f := format.Format{Name: "parquet", Extensions: []string{".parquet"}, Probe: probe, List: list, Open: open,
		ReadKeys: file.ReadTable.Keys()}
	if keys := o.Opts["key-file"]; keys != "" {
		f.Open = func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
			opts := map[string]string{"key-file": keys}
			maps.Copy(opts, o.Opts)
			o.Opts = opts
			return open(ctx, t, o)
		}
	}
	return f, true
}
