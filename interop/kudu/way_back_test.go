//go:build interop

package kudu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/kudu/kudufs"
)

// TestWayBack: tables of a real server, with a long history, are written as directories (kudu-fs), and a master and a
// tablet server start on these. They must serve the same rows, pass Kudu's own checksum scan, and continue like the
// first server: the same operations on both leave the same rows, after flushes, compactions and a restart.
func TestWayBack(t *testing.T) {
	t.Parallel()
	first := newDirServer(t, "log")
	first.start()
	var tables []*workload
	for _, x := range workloads() {
		switch x.name {
		case "types", "parts", "keys", "own_hash", "churn":
			x.alters = nil
			tables = append(tables, x)
		}
	}
	tally := map[string]int{}
	for chapter := range chapters {
		for _, x := range tables {
			x.live(first, chapter, tally)
		}
		if chapter == 2 {
			first.flushAll()
		}
	}
	want := map[string][]string{}
	scan := func(s *server, x *workload) []string {
		t.Helper()
		rows, err := s.scan(x.name)
		if err != nil {
			t.Fatal(x.name, err)
		}
		return rows
	}
	for _, x := range tables {
		want[x.name] = scan(first, x)
	}
	first.stop()
	place := filepath.Join(first.dir, "copy")
	for _, n := range []string{"tserver", "master"} {
		copyDir(t, filepath.Join(first.dir, n), filepath.Join(place, n))
	}
	first.start()

	w := &wayBack{t: t, first: first, want: want, tally: tally}
	for i, x := range tables {
		manager := []string{"log", "file"}[i%2]
		out := filepath.Join(first.dir, "back-"+x.name)
		from, err := stoa.Open(t.Context(), place+"#"+x.name, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = stoa.Convert(t.Context(), from, stoa.ScanSpec{}, out,
			stoa.CreateOptions{Formats: []format.Format{kudufs.Format}, To: "kudu-fs",
				Typed: kudufs.WriteOptions{Manager: manager}})
		from.Close()
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		w.serves(out, manager, x)
	}
	t.Logf("COUNT %s: tables %d, rows compared %d", t.Name(), len(tables), w.rows)

	// the same, with all tables on one master and one tablet server
	w.rows = 0
	bin := filepath.Join(first.dir, "stoa")
	if out, err := exec.Command("go", "build", "-o", bin, "stoa/cmd/stoa").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for verb, manager := range map[string]string{"convert --all": "log", "rescue": "file"} {
		first.stop()
		place = filepath.Join(first.dir, "copy for "+manager)
		for _, n := range []string{"tserver", "master"} {
			copyDir(t, filepath.Join(first.dir, n), filepath.Join(place, n))
		}
		first.start()
		out := filepath.Join(first.dir, "all of "+manager)
		args := append(strings.Fields(verb), place, "-o", out, "--to", "kudu-fs", "--opt", "block-manager="+manager)
		if text, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", verb, err, text)
			continue
		}
		w.serves(out, manager, tables...)
	}
	t.Logf("COUNT %s, one place: tables %d, rows compared %d", t.Name(), len(tables), w.rows)
}

// wayBack compares servers that start on what was written with the first one.
type wayBack struct {
	t     *testing.T
	first *server
	want  map[string][]string // rows of the first server's tables
	tally map[string]int
	rows  int // compared
}

func (w *wayBack) scan(s *server, x *workload) []string {
	w.t.Helper()
	rows, err := s.scan(x.name)
	if err != nil {
		w.t.Fatal(x.name, err)
	}
	return rows
}

func (w *wayBack) compare(s *server, when string, tables []*workload) {
	w.t.Helper()
	for _, x := range tables {
		if d := firstDifference(w.scan(s, x), w.want[x.name]); d != "" {
			w.t.Errorf("%s, %s: %s", x.name, when, d)
		}
		w.rows += len(w.want[x.name])
	}
}

func (w *wayBack) ksck(s *server, when string, tables []*workload) {
	w.t.Helper()
	for _, x := range tables {
		if err := s.ksck(x.name); err != nil {
			w.t.Errorf("%s, %s: %v", x.name, when, err)
		}
	}
}

// serves starts servers on the directories of some tables.
func (w *wayBack) serves(out, manager string, tables ...*workload) {
	w.t.Helper()
	s := newDirServer(w.t, manager)
	s.env = append(s.env, "ONE=1")
	for _, n := range []string{"master", "tserver"} {
		if err := os.Rename(filepath.Join(out, n), filepath.Join(s.dir, n)); err != nil {
			w.t.Fatal(err)
		}
	}
	s.start()
	w.ksck(s, "as it came", tables)
	w.compare(s, "as it came", tables)
	for _, chapter := range []int{0, 3} { // inserts of existing keys, updates, deletes, and the rest
		for _, x := range tables {
			ops := x.ops(chapter)
			w.first.apply(x.name, ops, 50, w.tally)
			s.apply(x.name, ops, 50, w.tally)
			w.want[x.name] = w.scan(w.first, x)
		}
		w.compare(s, "after more operations", tables)
		s.flushAll()
		w.compare(s, "after a flush", tables)
	}
	s.compactRows()
	w.compare(s, "after a compaction", tables)
	s.stop()
	s.start()
	w.compare(s, "after a restart", tables)
	w.ksck(s, "in the end", tables)
	s.stop()
}
