//go:build interop

package kudu

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/store"
)

// rescue damages each of three servers in another way, and rescues them with the command: one has wrong bytes in every
// second block of two tables, one has lost the superblocks of a third, and the one that died early has lost all its
// logs. Each output table must equal what the client read; the status is 3, as there was damage. The same with a
// second set of disks, copies of two of the servers: no row occurs twice.
func rescue(t *testing.T, s *server, tables []*workload, want map[string][]string) (rows int) {
	t.Helper()
	damaged := filepath.Join(s.dir, "copies", "rescue")
	for _, n := range []string{"tserver", "t2", "t3", "master"} {
		copyDir(t, filepath.Join(s.dir, n), filepath.Join(damaged, n))
	}
	tablets := tabletsOf(t, damaged)
	flipped := 0
	for _, name := range []string{tables[0].name, tables[1].name} {
		for i, b := range s.blocks()[name] {
			if i%2 == 0 {
				s.flip(t, b, filepath.Join(damaged, "tserver"))
				flipped++
			}
		}
	}
	gone := without(t, filepath.Join(damaged, "t2"), func(name string) bool {
		return strings.Contains(name, "/tablet-meta/") && tablets[filepath.Base(name)] == tables[2].name
	})
	logs := without(t, filepath.Join(damaged, "t3"), func(name string) bool { return strings.Contains(name, "/wals/") })
	if flipped == 0 || gone == 0 || logs == 0 {
		t.Fatalf("got %d blocks, %d superblocks and %d logs harmed, want some of each", flipped, gone, logs)
	}
	bin := filepath.Join(s.dir, "stoa")
	if out, err := exec.Command("go", "build", "-o", bin, "stoa/cmd/stoa").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, copies := range []string{"", "with copies"} {
		if copies != "" {
			for _, n := range []string{"tserver", "t2"} {
				copyDir(t, filepath.Join(s.dir, n), filepath.Join(damaged, "disks", n))
			}
		}
		out := filepath.Join(s.dir, "rescued"+strings.ReplaceAll(copies, " ", "-"))
		text, err := exec.Command(bin, "rescue", damaged, "-o", out, "--file-size", "64KiB").CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("rescue %s: got %v, want status 3: %s", copies, err, text)
		}
		for _, x := range tables {
			rows += check(t, filepath.Join(out, x.name), x.name+", rescued "+copies, nil, want[x.name])
		}
		reportOf(t, out, len(tables))
	}
	t.Logf("COUNT %s: rescued: blocks with wrong bytes %d, superblocks gone %d, logs gone %d, rows compared %d",
		t.Name(), flipped, gone, logs, rows)
	return rows
}

// reportOf checks that a report lists the expected number of tables, each with an output that was read back, and no
// lost row.
func reportOf(t *testing.T, out string, tables int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Whole  bool
		Tables []struct {
			Table string
			Lost  int64                    `json:"rows_lost"`
			Back  struct{ Verdict string } `json:"read_back"`
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, x := range doc.Tables {
		if x.Table == "?" { // blocks of the missing superblocks, whose rows come from other servers
			continue
		}
		whole++
		if x.Lost != 0 || x.Back.Verdict != "equal" {
			t.Errorf("report: got %+v, want no lost rows, equal", x)
		}
	}
	if doc.Whole || whole != tables {
		t.Errorf("report: got whole %v, %d tables, want false, %d", doc.Whole, whole, tables)
	}
}

// tabletsOf returns the tablets in directories, with the names of their tables.
func tabletsOf(t *testing.T, place string) map[string]string {
	t.Helper()
	how, err := stoa.Listing("census", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	_, err = how.List(context.Background(), format.Target{Tree: store.Local{}, Name: place}, format.OpenOptions{},
		func(v []string) { out[v[3]] = v[0] })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// without removes the chosen files below a directory, and counts them.
func without(t *testing.T, dir string, chosen func(name string) bool) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !chosen(name) {
			return err
		}
		n++
		return os.Remove(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
