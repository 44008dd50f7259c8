package table_test

import (
	"testing"

	"stoa/format/carbon/internal/table"
	"stoa/format/formattest"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &table.ReadTable)
}
