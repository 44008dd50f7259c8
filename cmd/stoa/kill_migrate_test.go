//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
)

// TestKilledMigration kills a migration repeatedly, at random times: every table that is visible afterwards is
// complete, and the run that is allowed to end has all tables, with the rows and checksums of an uninterrupted run.
func TestKilledMigration(t *testing.T) {
	t.Chdir(t.TempDir())
	const tables, rows = 24, 500
	for i := range tables {
		var text strings.Builder
		for r := range rows {
			fmt.Fprintf(&text, "{\"id\": %d, \"s\": \"row %d of %d\"}\n", i*rows+r, r, i)
		}
		dir := fmt.Sprintf("in/%c", 'a'+i%3)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fmt.Sprintf("%s/t%02d.jsonl", dir, i), []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	count := func(place string) string {
		var out, errs bytes.Buffer
		if st := run(t.Context(), []string{"count", place}, nil, &out, &errs); st != 0 {
			t.Errorf("%s: got status %d: %s", place, st, &errs)
		}
		return strings.TrimSpace(out.String())
	}
	visible := func() int {
		list, _ := filepath.Glob("out/[^.]*")
		return len(list)
	}
	complete := func() (n int) {
		list, _ := os.ReadDir("out")
		for _, e := range list {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				n++
				if got := count(filepath.Join("out", e.Name())); got != fmt.Sprint(rows) {
					t.Errorf("%s: got %s rows, want %d", e.Name(), got, rows)
				}
			}
		}
		return n
	}
	random := rand.New(rand.NewPCG(25, 1))
	kills, between := 0, 0
	kill := 12
	if testing.Short() {
		kill = 4
	}
	for i := range kill {
		args := []string{"migrate", "in", "-o", "out", "--parallel", "3", "-q"}
		if i > 0 {
			args = append(args, "--resume")
		}
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		// It is killed soon after some more tables have appeared, however fast the machine is.
		more := min(visible()+1+random.IntN(4), tables-1)
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			case <-time.After(time.Millisecond):
				if visible() < more {
					continue
				}
				time.Sleep(time.Duration(random.IntN(20_000)) * time.Microsecond)
				cmd.Process.Kill()
				<-done
				kills, ended = kills+1, true
			}
		}
		if n := complete(); n > 0 && n < tables {
			between++
		}
	}
	if kills < 2 || between == 0 {
		t.Errorf("got %d kills, %d of them between the first and the last table, want 2 and 1", kills, between)
	}
	report := func(args ...string) (r struct {
		Complete bool
		Tables   []struct {
			Source, State string
			Rows          int64
			Back          readBackDoc `json:"read_back"`
		}
	}) {
		var out, errs bytes.Buffer
		if st := run(t.Context(), append([]string{"migrate", "in", "-f", "json"}, args...), nil, &out, &errs); st !=
			cli.StatusFine {
			t.Fatalf("%v: got status %d: %s", args, st, &errs)
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	// What a killed run left beside a table that is done is swept, too, though that is not written again.
	list, _ := filepath.Glob("out/[^.]*")
	left := filepath.Join("out", ".stoa-tmp-1-"+filepath.Base(list[0]))
	if err := os.Mkdir(left, 0o777); err != nil {
		t.Fatal(err)
	}
	got, want := report("-o", "out", "--resume"), report("-o", "whole", "--parallel", "1")
	if len(got.Tables) != tables || len(want.Tables) != tables || complete() != tables {
		t.Fatalf("got %d tables, want %d", len(got.Tables), tables)
	}
	for i, w := range want.Tables {
		if g := got.Tables[i]; g.Source != w.Source || g.Rows != rows || g.Back != w.Back || g.State == "failed" {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
	if left, _ := filepath.Glob("out/.stoa-tmp*"); len(left) > 0 {
		t.Errorf("got %v left, want nothing", left)
	}
}

// readBackDoc is what a report says about the comparison of an output with its source.
type readBackDoc struct {
	Rows         int64
	Checksum     string
	ReadChecksum string `json:"read_checksum"`
	Verdict      string
}
