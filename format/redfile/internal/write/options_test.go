package write_test

import (
	"testing"

	"stoa/format/formattest"
	"stoa/format/redfile/internal/write"
)

func TestOptions(t *testing.T) { formattest.Options(t, &write.Table) }
