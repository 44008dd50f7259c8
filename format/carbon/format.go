package carbon

import (
	"context"
	"strings"

	"stoa/format"
)

// Format is CarbonData as the front of stoa sees it.
var Format = format.Format{
	Name:       "carbon",
	Title:      "Apache CarbonData V1, V2, V3",
	Extensions: []string{".carbondata"},
	Probe:      probe,
	Open:       open,
}

func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	if strings.HasSuffix(tg.Name, ".carbondata") {
		return format.Certain, nil
	}
	return format.No, nil
}

func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	return openSingle(ctx, tg, o)
}
