package reading

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/fault"
	"stoa/region"
)

// TestSumIsSaidFirst: however much else was noticed, and wherever the finding about the sum of all rows is among it,
// that finding is printed first, and the manifest lists a loss for it.
func TestSumIsSaidFirst(t *testing.T) {
	for _, code := range []string{"output.rows.undeclared", "output.rows.sum"} {
		for _, at := range []int{0, 7, 19, 20, 99} {
			var findings []region.Finding
			for i := range 100 {
				f := region.Finding{Code: "file.unreadable", Severity: region.Error, Part: "f", Lost: -1,
					Rows: [2]int64{-1, -1}, Message: fmt.Sprintf("fault %d", i)}
				if i == at {
					f.Code, f.Message = code, "the sum"
				}
				findings = append(findings, f)
			}
			var stderr bytes.Buffer
			a := cli.NewApp(nil, nil, &stderr)
			file := filepath.Join(t.TempDir(), "lost.json")
			flags := DamageFlags{Damaged: "skip-rows", Manifest: file}
			if err := flags.Report(t.Context(), a, []string{"f"}, findings, nil); err != cli.ErrDamage {
				t.Errorf("%s at %d: %v", code, at, err)
			}
			if first, _, _ := strings.Cut(stderr.String(), "\n"); !strings.HasPrefix(first, "error "+code+" ") {
				t.Errorf("%s at %d: the first line is %q", code, at, first)
			}
			if n := strings.Count(stderr.String(), "error "); n != 20 {
				t.Errorf("%s at %d: %d findings were printed", code, at, n)
			}
			var doc manifest
			b, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(b, &doc)
			}
			if err != nil || len(doc.Findings) != 100 || doc.Findings[0].Code != code || len(doc.Losses) != 1 ||
				doc.Losses[0].Exact || doc.Losses[0].Reason != "the sum" {
				t.Errorf("%s at %d: %v, %+v", code, at, err, doc)
			}
		}
	}
}

// TestLikeFindings: of many findings about bytes of one column one line is printed, which counts the others; three are
// all printed, and so are those of other columns, and those that only their messages tell apart.
func TestLikeFindings(t *testing.T) {
	print := func(n int, at int64, column string) string {
		var all []region.Finding
		for i := range n {
			all = append(all, region.Finding{Code: "cfile.block.checksum", Severity: region.Error, Part: "f",
				At:     fault.Span{Object: "f", Off: int64(i) * at, Len: at},
				Column: column, Message: fmt.Sprintf("sum %d", i)})
		}
		all = append(all, region.Finding{Code: "cfile.block.checksum", Severity: region.Error, Part: "f",
			At: fault.Span{Object: "f", Len: 1}, Column: "other"})
		var stderr bytes.Buffer
		ReportFindings(cli.NewApp(nil, nil, &stderr), all)
		return stderr.String()
	}
	if s := print(149, 40, "k"); strings.Count(s, "\n") != 2 || !strings.Contains(s, "; and 148 like it\n") {
		t.Errorf("149 alike: %s", s)
	}
	if s := print(3, 40, "k"); strings.Count(s, "\n") != 4 || strings.Contains(s, "like it") {
		t.Errorf("3 alike: %s", s)
	}
	if s := print(10, 0, "k"); strings.Count(s, "\n") != 11 {
		t.Errorf("10 without bytes: %s", s)
	}
}
