package redfile

import (
	"context"
	"stoa/format"

	"github.com/apache/arrow-go/v18/arrow"
)

// reread is format.Format.Reread: what was written without the Arrow schema that is usually kept comes back in
// the types that are stored. To see that the values are those that went in, it is read as if the schema were
// kept.
func reread(sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	f := format.Format{Name: "redfile", Extensions: []string{".red"}, Probe: probe, List: list, Open: open,
		ReadKeys: readKeys}
	opts, err := parseCreateOptions(o.Opts)
	if err != nil || !opts.noArrow {
		return f, err == nil
	}
	kept, err := schemaText(canonicalSchema(sc))
	if err != nil {
		return f, false
	}
	f.Retypes = true
	f.Open = func(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
		opts, err := parseOptions(o.Opts)
		if err != nil {
			return nil, err
		}
		opts.kept = kept
		return openWith(ctx, tg, o, opts)
	}
	return f, true
}
