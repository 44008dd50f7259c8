package write_test

import (
	"testing"

	"stoa/format/cfile/internal/write"
	"stoa/format/formattest"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &write.Table)
}
