package tables

import (
	"context"

	"stoa/sql/duck"
)

// Functions are the table functions besides stoa itself.
func Functions(ctx func() context.Context) []duck.Function { return nil }
