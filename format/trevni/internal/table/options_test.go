package table_test

import (
	"testing"

	"stoa/format/formattest"
	"stoa/format/trevni/internal/table"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &table.ReadTable)
}
