package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/look"
)

// One hole in a container of blocks is one incident, which says what it took and what to do; all findings are there
// when they are asked for, and in JSON each is in one incident.
func TestOneHoleIsOneIncident(t *testing.T) {
	place := filepath.Join(t.TempDir(), "k")
	copyDir(t, "../../format/kudu/testdata/file", place)
	_, before := runOver(t, "verify --all-findings", place)
	var blocks []string
	if err := filepath.WalkDir(place, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(p, "/data/data/") && len(filepath.Base(p)) == 16 {
			blocks = append(blocks, p)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(blocks) < 5 {
		t.Fatalf("%d blocks: the fixture is another one", len(blocks))
	}
	for _, b := range blocks {
		if err := os.Remove(b); err != nil {
			t.Fatal(err)
		}
	}
	st, all := runOver(t, "verify --all-findings", place)
	if st != cli.StatusDamage {
		t.Fatalf("status %d: %s", st, all)
	}
	st, text := runOver(t, "verify", place)
	most := strings.Count(before, "\n") + 8
	if n := strings.Count(text, "\n"); st != cli.StatusDamage || n > most || n >= strings.Count(all, "\n") {
		t.Errorf("%d blocks are gone; status %d, %d lines, at most %d are expected\n%s", len(blocks), st, n, most, text)
	}
	for _, part := range []string{"of one cause", "kudu.block.missing", "next: stoa recover", "--all-findings"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	// the next command is one that can be given as it stands: what is left of the table comes
	_, next, _ := strings.Cut(text, "next: stoa ")
	next, _, _ = strings.Cut(next, "\n")
	next = strings.NewReplacer(place, "", "DIR/", "OUT/", "FILE.", "OUT.").Replace(next)
	if st, out := runOver(t, next, place); st != cli.StatusDamage {
		t.Errorf("stoa %s: status %d, expected %d: what can be had is not everything\n%s", next, st, cli.StatusDamage,
			out)
	}
	_, doc := runOver(t, "verify -f json", place)
	var v look.VerifyDoc
	if err := json.Unmarshal([]byte(doc[:strings.LastIndex(doc, "}")+1]), &v); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, in := range v.Incidents {
		n += in.Findings
		if in.Finding < 0 || in.Finding >= len(v.Findings) {
			t.Errorf("an incident names finding %d of %d", in.Finding, len(v.Findings))
		}
	}
	if n != len(v.Findings) || n != strings.Count(all, "\n")-1 {
		t.Errorf("%d findings in incidents, %d in all, %d lines of text", n, len(v.Findings),
			strings.Count(all, "\n")-1)
	}
}
