//go:build interop

package kudu

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	dirs "stoa/format/kudu"
	"stoa/store"
)

// inKind mends the servers that rescue has damaged, and starts a master and the three servers on what was written: they
// must serve the rows that the client read, pass Kudu's own checksum scan, which compares replicas, and take changes,
// before and after a restart.
func inKind(t *testing.T, s *server, tables []*workload, want map[string][]string) (rows int) {
	t.Helper()
	damaged, bin := filepath.Join(s.dir, "copies", "rescue"), filepath.Join(s.dir, "stoa")
	names := map[string]string{} // of servers, by UUID
	for _, n := range []string{"tserver", "t2", "t3", "master"} {
		ls, err := dirs.FindServers(t.Context(), store.Local{}, filepath.Join(damaged, n), dirs.FSOptions{})
		if err != nil || len(ls) != 1 {
			t.Fatal(n, ls, err)
		}
		f, err := dirs.OpenFS(t.Context(), store.Local{}, ls[0], dirs.FSOptions{})
		if err != nil {
			t.Fatal(n, err)
		}
		names[f.UUID] = n
	}
	copied, twins := 0, 0
	for uuid, n := range names {
		out := filepath.Join(s.dir, "mended-"+n)
		text, err := exec.Command(bin, "rescue", "--in-kind", damaged, "--server", uuid, "-o", out, "-f",
			"json").Output()
		if err != nil {
			t.Fatalf("rescue --in-kind, %s: %v: %s", n, err, text)
		}
		var doc struct {
			Servers []struct {
				Tablets []struct {
					Other bool
					Twins int `json:"blocks_of_twins"`
				}
			}
		}
		if err := json.Unmarshal(text, &doc); err != nil || len(doc.Servers) != 1 {
			t.Fatalf("rescue --in-kind, %s: %v: %s", n, err, text)
		}
		for _, x := range doc.Servers[0].Tablets {
			if twins += x.Twins; x.Other {
				copied++
			}
		}
		was := filepath.Join(s.dir, n)
		if err := os.Rename(was, was+"-before"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(out, uuid), was); err != nil {
			t.Fatal(err)
		}
	}
	if copied == 0 {
		t.Error("no tablet had to be copied: this test proves nothing")
	}
	s.env = append(s.env, "ONE=1")
	var all []string
	for _, x := range tables {
		all = append(all, x.name)
	}
	compare := func(when string) {
		t.Helper()
		for _, x := range tables {
			got, err := s.scan(x.name)
			if err != nil {
				t.Errorf("%s, mended, %s: %v", x.name, when, err)
			} else if d := firstDifference(got, want[x.name]); d != "" {
				t.Errorf("%s, mended, %s: %s", x.name, when, d)
			}
			rows += len(got)
		}
		if err := s.ksck(all...); err != nil {
			t.Errorf("mended, %s: %v", when, err)
		}
	}
	flags := []string{"--raft_heartbeat_interval_ms=200"}
	s.start(flags...)
	compare("as they came")
	tally := map[string]int{}
	for _, x := range tables {
		s.apply(x.name, x.ops(0), 50, tally)
		now, err := s.scan(x.name)
		if err != nil {
			t.Fatal(x.name, err)
		}
		want[x.name] = now
	}
	s.flushAll()
	compare("after changes and a flush")
	s.stop()
	s.start(flags...)
	compare("after a restart")
	s.stop()
	t.Logf("COUNT %s: mended: servers %d, tablets copied from other servers %d, blocks of twins %d, rows compared %d",
		t.Name(), len(names), copied, twins, rows)
	return rows
}
