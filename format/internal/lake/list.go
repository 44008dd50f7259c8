package lake

import (
	"context"
	"iter"

	"stoa/format"
)

// List returns a Format.List for places that contain one table. entry describes the table, with the reading option at
// if that is set.
func List(entry func(context.Context, format.Target, format.OpenOptions) (format.Entry, error)) func(context.Context,
	format.Target) iter.Seq2[format.Entry, error] {
	return func(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
		return func(yield func(format.Entry, error) bool) {
			yield(entry(ctx, tg, tg.OpenOptions("at")))
		}
	}
}
