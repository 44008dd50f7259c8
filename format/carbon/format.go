package carbon

import (
	"context"

	"stoa/format"
	"stoa/format/carbon/internal/change"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/mixed"
	"stoa/format/carbon/internal/table"
	"stoa/store"
)

// Format is CarbonData's entry in stoa.Formats.
var Format = format.Format{
	Name:       "carbon",
	Title:      "Apache CarbonData V1, V2, V3",
	Extensions: []string{".carbondata"},
	Marker:     "Metadata",
	Probe:      table.Probe,
	List:       table.Lister(mixed.Open),
	Open:       mixed.Open,
	Create:     change.Create,
	Alters:     change.Alters,
	Describe:   anatomy,
	Described:  isMetadata,
	Verify:     verify,
	Recover:    mixed.Recover,
	Claims:     table.Claims,
	Unchecked: func(context.Context, format.Target, format.OpenOptions) (string, error) {
		return "CarbonData has no checksums, neither of data files nor of delete deltas", nil
	},
	Bounds: true,
	Change: mixed.Changer(),
	Home: func(ctx context.Context, tree store.Tree, opts map[string]string) (string, error) {
		return table.StoreLocation(ctx, tree, opts["properties"])
	},
	Codes:     layout.Codes,
	ReadKeys:  table.ReadTable.Keys(),
	WriteKeys: change.WriteTable.Keys(),
}
