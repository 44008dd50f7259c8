package redfile

import (
	"context"

	"stoa/format"
)

// claims implements format.Format.Claims. _metadata.red names every part of a split table by its path, so any other
// object in the directory does not belong to the table.
func claims(_ context.Context, tg format.Target, _ format.OpenOptions) format.Claimer {
	return func(string, bool) (format.Claim, error) { return format.Foreign, nil }
}
