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

// noGroups is a reader that drops all row groups without reporting it.
type noGroups struct{ format.Reader }

func (noGroups) RowGroups(context.Context, format.Part, format.Query) ([]format.RowGroup, error) {
	return nil, nil
}

// TestRecoverAddsUp: if rows are neither written nor reported as lost, recover reports an error with the three numbers
// and exits with status 3; the rows of an intact file add up.
func TestRecoverAddsUp(t *testing.T) {
	src, err := filepath.Abs("../../corpus/redfile/red1/flat_pages.red")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	recovered := func(dropping bool, out string) (int, map[string]any, string) {
		var stdout, stderr bytes.Buffer
		a := cli.NewApp(nil, &stdout, &stderr)
		for i := range a.Formats {
			if original := a.Formats[i].Recover; dropping && original != nil {
				a.Formats[i].Recover = func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader,
					[]region.Finding, error) {
					r, found, err := original(ctx, t, o)
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
	status, sum, stderr := recovered(false, "intact.jsonl")
	rows, _ := sum["declared"].(float64)
	if status != 0 || stderr != "" || rows == 0 || sum["out"] != rows || sum["lost"] != 0.0 || sum["exact"] != true {
		t.Errorf("intact: got status %d, accounts %v, %s", status, sum, stderr)
	}
	status, sum, stderr = recovered(true, "dropped.jsonl")
	if status != cli.StatusDamage || sum["declared"] != rows || sum["out"] != 0.0 || sum["lost"] != 0.0 ||
		!strings.Contains(stderr, "error output.rows.sum "+src) ||
		!strings.Contains(stderr, " 0 came out, and 0 were reported") {
		t.Errorf("dropped: got status %d, accounts %v, %s", status, sum, stderr)
	}
	if _, err := os.Stat("dropped.jsonl"); err != nil {
		t.Error(err)
	}
}
