package output

import (
	"bytes"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/display"
)

// TestLongCellInPipe: outside of a terminal a long value is printed as it is, and makes no other row longer.
func TestLongCellInPipe(t *testing.T) {
	long := strings.Repeat("k", 3000)
	r := &Report{Cols: []ReportColumn{{Name: "key"}, {Name: "n"}}}
	r.Add(nil, "a", "1")
	r.Add(nil, long, "2")
	var b bytes.Buffer
	if err := r.WriteTable(&b, display.TableStyle{}); err != nil {
		t.Fatal(err)
	}
	want := "key" + strings.Repeat(" ", maxAligned-3) + "  n\na" + strings.Repeat(" ", maxAligned-1) + "  1\n" + long +
		"  2\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
