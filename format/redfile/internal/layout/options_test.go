package layout_test

import (
	"testing"

	"stoa/format/formattest"
	"stoa/format/redfile/internal/layout"
)

func TestOptions(t *testing.T) { formattest.Options(t, &layout.ReadTable) }
