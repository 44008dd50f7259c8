package look

import (
	"strings"
	"testing"

	"stoa/internal/check"
)

// TestLostOne: numbers agree with their nouns.
func TestLostOne(t *testing.T) {
	for n, want := range map[int64]string{1: "; 1 row or cell lost", 2: "; 2 rows or cells lost"} {
		d := VerifyDoc{}
		if got := d.incidentLine(check.Incident{N: 2, Lost: n}); !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
