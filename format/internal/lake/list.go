package lake

import (
	"context"
	"iter"

	"stoa/format"
)

// List returns a Format.List for places that are one table: entry describes it, with the reading option at, if given.
func List(entry func(context.Context, format.Target, format.OpenOptions) (format.Entry, error)) func(context.Context,
	format.Target) iter.Seq2[format.Entry, error] {
	return func(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
		return func(yield func(format.Entry, error) bool) {
			yield(entry(ctx, tg, tg.OpenOptions("at")))
		}
	}
}
