package table_test

import (
	"testing"

	"stoa/format/formattest"
	"stoa/format/kudu/internal/table"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &table.ReadTable)
}
