package trevni

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/schema"
	"stoa/format/trevni/internal/table"
	"stoa/format/trevni/internal/write"
)

// rereadWiki and rereadAvro implement format.Format.Reread. Without the Arrow schema in the metadata, values come back
// in the stored types, and nested as far as levels show; to compare them with the input, the output is read as if the
// schema were stored in it.
func rereadWiki(sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	return reread("trevni", layout.Wiki, sc, o)
}

func rereadAvro(sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	return reread("trevni-avro", layout.Avro, sc, o)
}

func reread(name string, d layout.Dialect, sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	f := format.Format{Name: name, Extensions: []string{".trv"}, Probe: probe, List: list, Open: open,
		ReadKeys: table.ReadTable.Keys()}
	opts, err := write.ParseOptions(d, o.Opts)
	if err != nil || opts.ArrowSchema {
		return f, err == nil
	}
	fields := make([]arrow.Field, sc.NumFields())
	for i, field := range sc.Fields() {
		fields[i] = write.PlainField(field)
	}
	arrowSchema, err := schema.EncodeSchema(fields)
	if err != nil {
		return f, false
	}
	f.Retypes = true
	f.Open = func(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
		return openWithSchema(ctx, tg, o, arrowSchema)
	}
	return f, true
}
