package redfile

import (
	"context"

	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
	"stoa/format/redfile/internal/write"

	"github.com/apache/arrow-go/v18/arrow"
)

// reread implements format.Format.Reread. Without the Arrow schema, which is usually stored, values come back in the
// stored types. To check that they are the values that went in, the output is read as if the schema were stored in it.
func reread(sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	f := format.Format{Name: "redfile", Extensions: []string{".red"}, Probe: container.Probe, List: list, Open: open,
		ReadKeys: layout.ReadTable.Keys()}
	opts, err := write.ParseOptions(o.Opts)
	if err != nil || !opts.NoArrow {
		return f, err == nil
	}
	kept, err := schema.SchemaText(schema.CanonicalSchema(sc))
	if err != nil {
		return f, false
	}
	f.Retypes = true
	f.Open = func(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
		opts, err := layout.ParseOptions(o.Opts)
		if err != nil {
			return nil, err
		}
		opts.Kept = kept
		return openWith(ctx, tg, o, opts)
	}
	return f, true
}
