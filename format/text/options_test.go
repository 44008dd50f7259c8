package text

import (
	"testing"

	"stoa/format/formattest"
)

func TestOptions(t *testing.T) {
	formattest.Options(t, &csvWriting)
	formattest.Options(t, &csvReading)
	formattest.Options(t, &jsonlWriting)
	formattest.Options(t, &jsonlReading)
}
