package write_test

import (
	"testing"

	"stoa/format/formattest"
	"stoa/format/trevni/internal/write"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &write.Table)
	formattest.Options(t, &write.AvroTable)
}
