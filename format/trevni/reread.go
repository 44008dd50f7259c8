package trevni

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
)

// rereadWiki and rereadAvro are format.Format.Reread: what was written without the Arrow schema that is usually
// kept comes back in the types that are stored, and nested as far as levels tell. To see that the values are
// those that went in, it is read as if the schema were kept.
func rereadWiki(sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	return reread("trevni", Wiki, sc, o)
}

func rereadAvro(sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	return reread("trevni-avro", Avro, sc, o)
}

func reread(name string, d Dialect, sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	f := format.Format{Name: name, Extensions: []string{".trv"}, Probe: probe, List: list, Open: open,
		ReadKeys: readKeys}
	opts, err := parseWriteOptions(d, o.Opts)
	if err != nil || opts.arrowSchema {
		return f, err == nil
	}
	fields := make([]arrow.Field, sc.NumFields())
	for i, field := range sc.Fields() {
		fields[i] = plainField(field)
	}
	kept, err := encodeSchema(fields)
	if err != nil {
		return f, false
	}
	f.Retypes = true
	f.Open = func(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
		return openKept(ctx, tg, o, kept)
	}
	return f, true
}
