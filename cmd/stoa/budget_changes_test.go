package main

import (
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// TestBudgetsOverChanges: verbs that change a table open it within the given limits, and refuse a table that exceeds
// them without changing it.
func TestBudgetsOverChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "managed")
	carbonSample("managed_complex")(t, dir)
	before := filesIn(t, dir)
	for _, verb := range []string{"delete --where true", "update --where true --set id=1", "compact --minor", "clean",
		"merge-index", "drop --yes", "delete --segment 0"} {
		for _, flag := range []string{"--memory 1B", "--max-fields 1", "--max-depth 1"} {
			st, stderr := runOver(t, verb+" "+flag, dir)
			if st != cli.StatusCannot || !strings.Contains(stderr, strings.Fields(flag)[0]) {
				t.Errorf("%s %s: got status %d, want %d and a message that names the flag: %.300s", verb, flag, st,
					cli.StatusCannot, stderr)
			}
		}
	}
	if after := filesIn(t, dir); after != before {
		t.Errorf("the table was changed:\n%s\n%s", before, after)
	}
}
