//go:build interop

package kudu

import (
	"os"
	"path/filepath"
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

	rows := 0
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
		s := newDirServer(t, manager)
		s.env = append(s.env, "ONE=1")
		for _, n := range []string{"master", "tserver"} {
			if err := os.Rename(filepath.Join(out, n), filepath.Join(s.dir, n)); err != nil {
				t.Fatal(err)
			}
		}
		compare := func(when string) {
			t.Helper()
			if d := firstDifference(scan(s, x), want[x.name]); d != "" {
				t.Errorf("%s, %s: %s", x.name, when, d)
			}
			rows += len(want[x.name])
		}
		s.start()
		if err := s.ksck(x.name); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		compare("as it came")
		for _, chapter := range []int{0, 3} { // inserts of existing keys, updates, deletes, and the rest
			ops := x.ops(chapter)
			first.apply(x.name, ops, 50, tally)
			s.apply(x.name, ops, 50, tally)
			want[x.name] = scan(first, x)
			compare("after more operations")
			s.flushAll()
			compare("after a flush")
		}
		s.compactRows()
		compare("after a compaction")
		s.stop()
		s.start()
		compare("after a restart")
		if err := s.ksck(x.name); err != nil {
			t.Errorf("%s, in the end: %v", x.name, err)
		}
		s.stop()
	}
	t.Logf("COUNT %s: tables %d, rows compared %d", t.Name(), len(tables), rows)
}
