package main

import (
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// TestBudgetsOverChanges: what changes a table opens it within the limits that are given, and changes nothing of one
// that is more.
func TestBudgetsOverChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "managed")
	carbonSample("managed_complex")(t, dir)
	before := filesIn(t, dir)
	for _, verb := range []string{"delete --where true", "update --where true --set id=1", "compact --minor", "clean",
		"merge-index", "drop --yes", "delete --segment 0"} {
		for _, flag := range []string{"--memory 1B", "--max-fields 1", "--max-depth 1"} {
			st, said := runOver(t, verb+" "+flag, dir)
			if st != cli.StatusCannot || !strings.Contains(said, strings.Fields(flag)[0]) {
				t.Errorf("%s %s: status %d: %.300s", verb, flag, st, said)
			}
		}
	}
	if after := filesIn(t, dir); after != before {
		t.Errorf("the table was changed")
	}
}
