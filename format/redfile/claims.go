package redfile

import (
	"context"

	"stoa/format"
)

// claims implements format.Format.Claims: in the directory of a split table _metadata.red names every part.
func claims(_ context.Context, tg format.Target, _ format.OpenOptions) format.Claimer {
	return func(string, bool) (format.Claim, error) { return format.Foreign, nil }
}
