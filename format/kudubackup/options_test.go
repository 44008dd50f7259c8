package kudubackup

import (
	"testing"

	"stoa/format/formattest"
)

func TestOptions(t *testing.T) { formattest.Options(t, &writing) }
