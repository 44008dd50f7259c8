package change_test

import (
	"testing"

	"stoa/format/carbon/internal/change"
	"stoa/format/formattest"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &change.WriteTable)
}
