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

// reread implements format.Format.Reread. Without the Arrow schema in the metadata, values are read back in RedFile's
// own types. To compare them with the input, the output is read as if the schema were stored in it.
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
		opts.ArrowSchema = kept
		return openWith(ctx, tg, o, opts)
	}
	return f, true
}
