package carbon

import (
	"context"

	"stoa/format"
)

// Format is CarbonData as the front of stoa sees it.
var Format = format.Format{
	Name:       "carbon",
	Title:      "Apache CarbonData V1, V2, V3",
	Extensions: []string{".carbondata"},
	Probe:      probe,
	List:       list,
	Open:       open,
	Create:     create,
	Alters:     alters,
	Describe:   describe,
	Verify:     verify,
	Recover:    recoverTable,
	Claims:     claims,
	Unchecked: func(context.Context, format.Target, format.OpenOptions) (string, error) {
		return "CarbonData has no checksums, neither of data files nor of delete deltas", nil
	},
	Codes:     Codes,
	ReadKeys:  readKeys,
	WriteKeys: writeKeys,
}
