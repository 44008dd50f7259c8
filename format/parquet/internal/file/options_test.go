package file_test

import (
	"testing"

	"stoa/format/formattest"
	"stoa/format/parquet/internal/file"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &file.ReadTable)
}
