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

// TestIncidents: missing blocks of a table are reported as one incident with its cost and the next command;
// --all-findings lists all findings, and in JSON each belongs to one incident.
func TestIncidents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "k")
	copyDir(t, "../../format/kudu/testdata/file", dir)
	_, before := runOver(t, "verify --all-findings", dir)
	var blocks []string
	if err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(p, "/data/data/") && len(filepath.Base(p)) == 16 {
			blocks = append(blocks, p)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(blocks) < 5 {
		t.Fatalf("got %d blocks in the fixture, want 5 or more", len(blocks))
	}
	for _, b := range blocks {
		if err := os.Remove(b); err != nil {
			t.Fatal(err)
		}
	}
	st, all := runOver(t, "verify --all-findings", dir)
	if st != cli.StatusDamage {
		t.Fatalf("got status %d, want %d: %s", st, cli.StatusDamage, all)
	}
	st, text := runOver(t, "verify", dir)
	limit := strings.Count(before, "\n") + 8
	if n := strings.Count(text, "\n"); st != cli.StatusDamage || n > limit || n >= strings.Count(all, "\n") {
		t.Errorf("%d blocks missing: got status %d, %d lines, want %d, at most %d\n%s", len(blocks), st, n,
			cli.StatusDamage, limit, text)
	}
	for line := range strings.Lines(all) { // no finding names only its file
		if strings.HasPrefix(line, "error kudu.") && !strings.Contains(line, "table ") {
			t.Errorf("got %swant the table in it", line)
		}
	}
	for _, part := range []string{"of one cause", "kudu.block.missing", "next: stoa recover", "--all-findings"} {
		if !strings.Contains(text, part) {
			t.Errorf("got\n%s\nwant %q in it", text, part)
		}
	}
	// the next command works as printed: it writes what is left of the table
	_, next, _ := strings.Cut(text, "next: stoa ")
	next, _, _ = strings.Cut(next, "\n")
	next = strings.NewReplacer(dir, "", "DIR/", "OUT/", "FILE.", "OUT.").Replace(next)
	if st, out := runOver(t, next, dir); st != cli.StatusDamage {
		t.Errorf("stoa %s: got status %d, want %d, as rows are lost\n%s", next, st, cli.StatusDamage, out)
	}
	_, doc := runOver(t, "verify -f json", dir)
	var v look.VerifyDoc
	if err := json.Unmarshal([]byte(doc[:strings.LastIndex(doc, "}")+1]), &v); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, in := range v.Incidents {
		n += in.Findings
		if in.Finding < 0 || in.Finding >= len(v.Findings) {
			t.Errorf("got an incident of finding %d, want 0 to %d", in.Finding, len(v.Findings)-1)
		}
	}
	if n != len(v.Findings) || n != strings.Count(all, "\n")-1 {
		t.Errorf("got %d findings in incidents, %d in all, %d lines of text; want them equal", n, len(v.Findings),
			strings.Count(all, "\n")-1)
	}
}

// TestNextForServer: for damage in a directory with several tables, verify names rescue, and that works as printed.
func TestNextForServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "k")
	copyDir(t, "../../format/kudu/testdata/log", dir)
	containers, err := filepath.Glob(filepath.Join(dir, "data", "data", "*.data"))
	if err != nil || len(containers) == 0 {
		t.Fatal(containers, err)
	}
	for _, name := range containers {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		clear(b[40:min(len(b), 2000)])
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	_, doc := runOver(t, "verify -f json", dir)
	next := "stoa rescue " + dir + " -o DIR/"
	if !strings.Contains(doc, `"next": "`+next+`"`) {
		t.Fatalf("got %s\nwant the next command %s", doc, next)
	}
	out := filepath.Join(t.TempDir(), "out")
	if st, text := runOver(t, "rescue -o "+out, dir); st != cli.StatusDamage {
		t.Errorf("rescue: status %d: %s", st, text)
	}
	if _, err := os.Stat(filepath.Join(out, "report.json")); err != nil {
		t.Error(err)
	}
}

// TestNextOfOne: an error names the next command also if nothing else is wrong.
func TestNextOfOne(t *testing.T) {
	b, err := os.ReadFile("../../format/parquet/testdata/order.v1.parquet")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(name, b[:len(b)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	next := "\n  next: stoa recover " + name + " -o FILE.parquet\n"
	if st, text := runOver(t, "verify", name); st != cli.StatusDamage || strings.Count(text, next) != 1 ||
		!strings.Contains(text, "1 finding:") {
		t.Errorf("got status %d, %s\nwant one error and %q", st, text, next)
	}
}

// TestNextOfSeal: wherever a seal is damaged, while the files are as they were when it was made, verify names no
// command that takes the files for damaged.
func TestNextOfSeal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "k")
	copyDir(t, "../../format/kudu/testdata/file", dir)
	sealed := filepath.Join(t.TempDir(), "k.seal")
	if st, text := runOver(t, "seal --parity 10% -o "+sealed, dir); st != 0 {
		t.Fatal(st, text)
	}
	b, err := os.ReadFile(sealed)
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for at := 40; at < len(b); at += max(1, len(b)/12) {
		c := append([]byte{}, b...)
		c[at] ^= 1
		if err := os.WriteFile(sealed, c, 0o666); err != nil {
			t.Fatal(err)
		}
		_, text := runOver(t, "verify --seal "+sealed, dir)
		if strings.Contains(text, "seal.damaged") {
			damaged++
		}
		if strings.Contains(text, "next: stoa re") {
			t.Errorf("byte %d: got\n%s\nwant no recover or rescue", at, text)
		}
	}
	if damaged == 0 {
		t.Error("no byte damaged the seal")
	}
}
