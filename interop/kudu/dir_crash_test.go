//go:build interop

package kudu

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa"
)

// TestDirCrashes kills a server in the middle of writing, flushing and compacting, copies its directories, and starts
// it again. stoa must read from the copy what Kudu then has.
func TestDirCrashes(t *testing.T) {
	t.Parallel()
	s := newDirServer(t, "log")
	busy := []string{"--enable_flush_memrowset=true", "--enable_flush_deltamemstores=true",
		"--enable_rowset_compaction=true", "--enable_major_delta_compaction=true",
		"--enable_minor_delta_compaction=true", "--enable_log_gc=true", "--log_segment_size_mb=1",
		"--log_min_segments_to_retain=1", "--maintenance_manager_num_threads=2"}
	s.start(busy...)
	x := workloads()[1] // parts
	x.alters = nil
	s.make(x.name, x.fields, x.more...)
	rows, pending, crashes := 0, 0, 6
	for crash := range crashes {
		var ops []string
		for i := range 60 {
			x.seed = 10000*crash + 100*i
			for chapter := range chapters {
				ops = append(ops, x.ops(chapter)...)
			}
		}
		words := []string{"apply", x.name, s.file(ops), s.file(nil), strconv.Itoa(20 + 30*crash)}
		if _, err := io.WriteString(s.hand, strings.Join(words, "\t")+"\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(1500+700*crash) * time.Millisecond)
		s.kill()
		dead := copyDir(t, s.dir+"/tserver", fmt.Sprintf("%s/copies/crash%d/tserver", s.dir, crash))
		s.start(busy...)
		var want []string
		var err error
		for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
			if want, err = s.scan(x.name); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := read(dead+"#"+x.name, nil, stoa.ScanSpec{})
		if err != nil {
			t.Errorf("crash %d: %v", crash, err)
			continue
		}
		rows += len(want)
		if d := difference(r.rows, want); d != "" {
			pending += s.explain(t, fmt.Sprintf("crash %d: stoa reads %s", crash, d), dead, x.name, r.rows, want)
		}
	}
	t.Logf("COUNT %s: crashes %d, rows compared %d, of these rows of operations without a commit %d", t.Name(),
		crashes, rows, pending)
}

// explain is called when the restarted server has other rows than stoa read. stoa leaves out operations in the log
// without a commit; a server that starts as the only replica commits them. So each row that differs must belong to such
// an operation, by Kudu's own dump of its log.
func (s *server) explain(t *testing.T, what, dead, table string, got, want []string) (differ int) {
	t.Helper()
	pending := ""
	for _, l := range s.ask("tablets", table) {
		id, _, _ := strings.Cut(l, "\t")
		pending += pendingOps(t, filepath.Join(dead, "wal", "wals", id))
	}
	count := map[string]int{}
	for _, r := range got {
		count[r]++
	}
	for _, r := range want {
		count[r]--
	}
	for r, n := range count {
		if n == 0 {
			continue
		}
		differ++
		if part := fmt.Sprintf("int32 i=%s,", strings.Split(r, "\t")[1]); !strings.Contains(pending, part) {
			t.Errorf("%s; no operation without a commit explains the row %.200s", what, r)
		}
	}
	return differ
}

// pendingOps is what `kudu wal dump` prints for the operations without a commit.
func pendingOps(t *testing.T, dir string) string {
	t.Helper()
	segments, err := filepath.Glob(dir + "/wal-*")
	if err != nil || len(segments) == 0 {
		t.Errorf("%s: no log (%v)", dir, err)
	}
	open := map[string]string{}
	id := ""
	for _, f := range segments {
		out, err := kudu(t, "wal", "dump", f, "--print_meta=false", "--truncate_data=0")
		if err != nil {
			t.Error(err)
		}
		for l := range strings.SplitSeq(string(out), "\n") {
			at, kind, ok := strings.Cut(l, "\t")
			switch {
			case strings.HasPrefix(l, "COMMIT "):
				delete(open, strings.TrimPrefix(l, "COMMIT "))
				id = ""
			case ok && strings.HasPrefix(kind, "REPLICATE"):
				id, _, _ = strings.Cut(at, "@")
				open[id] = ""
			case id != "":
				open[id] += l + "\n"
			}
		}
	}
	all := ""
	for _, x := range open {
		all += x
	}
	return all
}
