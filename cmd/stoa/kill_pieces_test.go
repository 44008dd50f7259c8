//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
)

// unsortedTablets writes the directories of a Kudu server with a table of this many rows in two tablets whose rowsets
// overlap: each tablet is one unit that cannot be divided.
func unsortedTablets(t *testing.T, rows int) {
	t.Helper()
	r := rand.New(rand.NewPCG(20, 26))
	var text bytes.Buffer
	text.WriteString("id,text\n")
	for _, id := range r.Perm(rows) {
		fmt.Fprintf(&text, "%d,%016x%016x\n", id, r.Uint64(), r.Uint64())
	}
	if err := os.WriteFile("in.csv", text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, "convert", "in.csv", "-o", "fs", "--to", "kudu-fs", "--opt", "key=id", "--opt", "buckets=2", "--opt",
		"table=t", "--opt", "rowset-size=400000")
}

// must runs the command, which must succeed, and returns its standard output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if st := run(context.Background(), args, strings.NewReader(""), &stdout, &stderr); st != cli.StatusFine {
		t.Fatalf("%v: status %d: %s", args, st, &stderr)
	}
	return stdout.String()
}

// idsOf returns the values of the column id, in the order of the files of a directory.
func idsOf(t *testing.T, dir string) (ids []int) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.parquet"))
	for _, f := range files {
		for line := range strings.Lines(must(t, "cat", f, "-c", "id", "-f", "csv")) {
			if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				ids = append(ids, n)
			}
		}
	}
	return ids
}

// TestKilledPieces kills a rescue of a table in several files repeatedly, at random times: the run that is allowed to
// finish produces the same rows, order and file sizes as an uninterrupted one, and no run starts over. Files that rot
// between two runs are written again.
func TestKilledPieces(t *testing.T) {
	t.Chdir(t.TempDir())
	kills, rows := 20, 300_000
	if testing.Short() {
		kills, rows = 3, 60_000
	}
	unsortedTablets(t, rows)
	args := []string{"rescue", "fs/tserver", "--file-size", "200KB", "--parallel", "2"}
	must(t, append(args, "-o", "whole")...)
	want := idsOf(t, "whole/t")
	if len(want) != rows {
		t.Fatalf("got %d rows without an interruption, want %d", len(want), rows)
	}
	seen, killed, r := 0, 0, rand.New(rand.NewPCG(1, 2))
	args = append(args, "-o", "out")
	for range 10 * kills {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(args, "--resume") {
			args = append(args, "--resume")
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		more := piecesIn("out") + 1
		for begun := time.Now(); piecesIn("out") < more && time.Since(begun) < time.Minute; {
			if len(done) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		cmd.Process.Kill()
		if err := <-done; err == nil {
			break
		}
		if killed++; killed == kills {
			break
		}
		if n := piecesIn("out"); n < seen {
			t.Errorf("kill %d: got %d files in the journal, want %d or more, as before", killed, n, seen)
		} else {
			seen = n
		}
	}
	t.Logf("killed %d times, %d files were in the journal", killed, seen)
	if killed < kills/2 {
		t.Errorf("got %d kills, want %d or more", killed, kills/2)
	}
	if killed == kills && seen > 2 {
		var out, errs bytes.Buffer
		plain := args[:len(args)-1]
		if st := run(context.Background(), plain, nil, &out, &errs); st != cli.StatusUse {
			t.Errorf("without --resume: got status %d, want %d: %s", st, cli.StatusUse, &errs)
		}
	}
	spoil(t, "out/t.unfinished")
	must(t, args...)
	if got := idsOf(t, "out/t"); !slices.Equal(got, want) {
		t.Errorf("got %d rows in another order than without an interruption, %d rows", len(got), len(want))
	}
	must(t, "diff", "in.csv", "out/t", "--on", "id", "--values")
	if got, want := piecesOfReport(t, "out"), piecesOfReport(t, "whole"); got != want {
		t.Errorf("files: got\n%s\nwant\n%s", got, want)
	}
	if left, _ := filepath.Glob("out/t/.*"); len(left) > 0 {
		t.Errorf("got %v left, want nothing", left)
	}
}

// spoil changes a byte of every second file of a directory, but neither their sizes nor their times.
func spoil(t *testing.T, dir string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.parquet"))
	for i := 0; i < len(files); i += 2 {
		b, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 { // one that was begun
			continue
		}
		b[len(b)/3] ^= 1
		if err := errors.Join(os.WriteFile(files[i], b, 0o666), os.Chtimes(files[i], info.ModTime(),
			info.ModTime())); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files were there, every second was changed", len(files))
}

// piecesIn returns the number of files in the journals of a directory.
func piecesIn(dir string) (n int) {
	names, _ := filepath.Glob(filepath.Join(dir, "*", ".stoa-pieces.journal"))
	for _, name := range names {
		b, _ := os.ReadFile(name)
		n += bytes.Count(b, []byte(`"piece"`))
	}
	return n
}

// piecesOfReport returns the files in a report, with their rows and checksums.
func piecesOfReport(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tables []struct {
			Pieces []struct {
				File, Checksum string
				Rows           int64
			}
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil || len(doc.Tables) != 1 || len(doc.Tables[0].Pieces) < 3 {
		t.Fatalf("%v: got %+v, want a table of several files", err, doc)
	}
	var out strings.Builder
	for _, p := range doc.Tables[0].Pieces {
		fmt.Fprintf(&out, "%s %d %s\n", p.File, p.Rows, p.Checksum)
	}
	return out.String()
}

// TestChangedPieces continues a run some of whose files have been changed since: with --force, these are written again.
func TestChangedPieces(t *testing.T) {
	t.Chdir(t.TempDir())
	unsortedTablets(t, 30_000)
	args := []string{"convert", "--all", "fs/tserver", "-o", "out", "--file-size", "100KB"}
	must(t, args...)
	want := idsOf(t, "out/t")
	if !slices.Equal(idsOf(t, "out/t"), want) || len(want) != 30_000 {
		t.Fatalf("got %d rows, want 30,000", len(want))
	}
	files, _ := filepath.Glob("out/t/*.parquet")
	if len(files) < 4 {
		t.Fatalf("got %d files, want 4 or more", len(files))
	}
	name := files[1]
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if st := run(t.Context(), append(args, "--resume", "--force"), nil, &stdout, &stderr); st != cli.StatusFine {
		t.Fatalf("status %d: %s", st, &stderr)
	}
	if !strings.Contains(stderr.String(), "converted again") {
		t.Errorf("got %s, want that the table is converted again", &stderr)
	}
	if got := idsOf(t, "out/t"); !slices.Equal(got, want) {
		t.Errorf("got %d rows, want %d as before", len(got), len(want))
	}
	for _, to := range []string{"csv", "jsonl", "arrow", "trevni", "redfile"} {
		must(t, "convert", "--all", "fs/tserver", "-o", to, "--file-size", "300KB", "--to", to)
		files, _ := filepath.Glob(to + "/t/*")
		n := 0
		for _, f := range files {
			one, _ := strconv.Atoi(strings.TrimSpace(must(t, "count", f)))
			n += one
		}
		if n != 30_000 || len(files) < 3 {
			t.Errorf("%s: got %d rows in %d files, want 30,000 in several", to, n, len(files))
		}
	}
	for _, to := range []string{"cfile", "kudu-fs", "kudu-backup"} {
		if st := run(t.Context(), []string{"convert", "--all", "in.csv", "-o", "x", "--file-size", "1MB", "--to", to},
			nil, io.Discard, io.Discard); st != cli.StatusUse {
			t.Errorf("%s: got status %d, want %d", to, st, cli.StatusUse)
		}
	}
}
