package write_test

import (
	"testing"

	"stoa/format/formattest"
	"stoa/format/parquet/internal/write"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &write.WriteTable)
}
