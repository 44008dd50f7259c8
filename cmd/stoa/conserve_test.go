package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
	"stoa/region"
)

// noGroups is a reader that sees no row group, and says nothing of that.
type noGroups struct{ format.Reader }

func (noGroups) RowGroups(context.Context, format.Part, format.Query) ([]format.RowGroup, error) {
	return nil, nil
}

// TestRecoverAddsUp: rows that recover neither writes nor tells as lost are an error with the three numbers and
// the status 3, before the output is reported; and what is whole adds up.
func TestRecoverAddsUp(t *testing.T) {
	src, err := filepath.Abs("../../corpus/redfile/red1/flat_pages.red")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	recovered := func(blind bool, out string) (int, map[string]any, string) {
		var stdout, stderr bytes.Buffer
		a := cli.NewApp(nil, &stdout, &stderr)
		for i := range a.Formats {
			if right := a.Formats[i].Recover; blind && right != nil {
				a.Formats[i].Recover = func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader,
					[]region.Finding, error) {
					r, found, err := right(ctx, t, o)
					return noGroups{r}, found, err
				}
			}
		}
		status := runArgs(a, context.Background(), []string{"recover", src, "-o", out, "-f", "json"})
		var doc struct{ Accounts map[string]any }
		if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
			t.Fatalf("%v: %s", err, stdout.Bytes())
		}
		return status, doc.Accounts, stderr.String()
	}
	status, sum, said := recovered(false, "whole.jsonl")
	rows, _ := sum["declared"].(float64)
	if status != 0 || said != "" || rows == 0 || sum["out"] != rows || sum["lost"] != 0.0 || sum["exact"] != true {
		t.Errorf("whole: status %d, %v, %s", status, sum, said)
	}
	status, sum, said = recovered(true, "less.jsonl")
	if status != cli.StatusDamage || sum["declared"] != rows || sum["out"] != 0.0 || sum["lost"] != 0.0 ||
		!strings.Contains(said, "error output.rows.sum "+src) ||
		!strings.Contains(said, " 0 came out, and 0 were reported") {
		t.Errorf("less: status %d, %v, %s", status, sum, said)
	}
	if _, err := os.Stat("less.jsonl"); err != nil {
		t.Error(err)
	}
}
