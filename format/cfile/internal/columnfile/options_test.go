package columnfile_test

import (
	"testing"

	"stoa/format/cfile/internal/columnfile"
	"stoa/format/formattest"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &columnfile.ReadTable)
}
