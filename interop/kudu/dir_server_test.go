//go:build interop

package kudu

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ---- Additions to the server for the tests of whole directories.

// startWith starts a server with flags, including those for its directories.
func (s *server) startWith(flags ...string) {
	s.t.Helper()
	if s.split {
		flags = append(flags, "--fs_data_dirs="+s.dirs("data"), "--fs_metadata_dir="+s.dirs("meta"))
	}
	s.start(flags...)
}

func newDirServer(t testing.TB, blockManager string) *server {
	s := newServer(t)
	s.manager, s.env = blockManager, append(s.env, "BM="+blockManager)
	return s
}

// spec is a column in the notation of Drive.java's commands make and alter.
func (f field) spec() string {
	typ := f.Type
	if strings.HasPrefix(typ, "DECIMAL") {
		typ = "DECIMAL"
	}
	key := strconv.FormatBool(f.Key)
	if f.unsure {
		key = "nonunique"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%v\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%v", f.Name, typ, key, f.Nullable, f.Enc,
		f.Comp, f.BlockSize, f.Prec, f.Scale, f.Len, f.def, f.immutable)
}

// make creates a table; partitions and the rest are separate lines.
func (s *server) make(name string, fields []field, more ...string) {
	s.t.Helper()
	var lines []string
	for _, f := range fields {
		if !f.auto {
			lines = append(lines, "col\t"+f.spec())
		}
	}
	s.must("make", name, s.file(append(lines, more...)))
}

func (s *server) alter(name string, lines ...string) {
	s.t.Helper()
	s.must("alter", name, s.file(lines))
}

// apply sends operations and counts their outcomes.
func (s *server) apply(name string, ops []string, batch int, tally map[string]int) {
	s.t.Helper()
	out := s.file(nil)
	s.must("apply", name, s.file(ops), out, strconv.Itoa(batch))
	for i, l := range s.lines(out) {
		l, _, _ = strings.Cut(l, ":")
		kind, _, _ := strings.Cut(ops[i], "\t")
		tally[kind+" "+l]++
	}
}

func (s *server) ask(words ...string) []string {
	s.t.Helper()
	out := s.file(nil)
	s.must(append(words, out)...)
	return s.lines(out)
}

// An op is an entry of the page of maintenance operations.
type op struct {
	Name        string
	RAMAnchored string `json:"ram_anchored"`
	Perf        float64
}

func (s *server) maintenance() (running int, registered []op) {
	resp, err := http.Get("http://" + s.tweb + "/maintenance-manager")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	// without its directory of templates the server prints their data
	m := regexp.MustCompile(`(?s)<pre>(\{.*\})</pre>`).FindSubmatch(page)
	var p struct {
		Running    []any `json:"running_operations"`
		Registered []op  `json:"registered_operations"`
	}
	if m == nil || json.Unmarshal(m[1], &p) != nil {
		s.t.Fatalf("the page of maintenance operations has changed: %.500s", page)
	}
	return len(p.Running), p.Registered
}

// let has the server run maintenance operations of some kinds until none of them is left.
func (s *server) let(ops []string, flags ...string) {
	s.t.Helper()
	for _, f := range flags {
		s.flag(f, "true")
		defer s.flag(f, "false")
	}
	left, quiet, idle := 0, 0, 0
	var names []string
	for end := time.Now().Add(120 * time.Second); time.Now().Before(end); time.Sleep(150 * time.Millisecond) {
		running, registered := s.maintenance()
		left, names = running, nil
		for _, o := range registered {
			for _, want := range ops {
				if strings.HasPrefix(o.Name, want+"(") &&
					(strings.HasPrefix(want, "Flush") && o.RAMAnchored != "0B" || o.Perf > 0) {
					left++
					names = append(names, fmt.Sprintf("%s, perf %g", o.Name, o.Perf))
				}
			}
		}
		if idle++; running > 0 {
			idle = 0
		}
		if idle == 150 && !strings.HasPrefix(ops[0], "Flush") { // it lists an operation as useful, but does not run it
			s.t.Logf("left undone: %v", names)
			return
		}
		if quiet++; left > 0 {
			quiet = 0
		}
		if quiet == 4 { // the server looks for work only now and then
			return
		}
	}
	s.t.Fatalf("after two minutes of %v, %d operations are left: %v", ops, left, names)
}

func (s *server) flushAll() {
	s.t.Helper()
	s.let([]string{"FlushMRSOp", "FlushDeltaMemStoresOp"}, "enable_flush_memrowset", "enable_flush_deltamemstores")
}

func (s *server) flushSomeDeltas() {
	s.t.Helper()
	s.let([]string{"FlushDeltaMemStoresOp"}, "enable_flush_deltamemstores")
}

func (s *server) compactDeltas(major bool) {
	s.t.Helper()
	if major {
		s.flag("tablet_delta_store_major_compact_min_ratio", "0.001")
		s.let([]string{"MajorDeltaCompactionOp"}, "enable_major_delta_compaction")
		return
	}
	s.flag("tablet_delta_store_minor_compact_max", "2")
	s.let([]string{"MinorDeltaCompactionOp"}, "enable_minor_delta_compaction")
}

func (s *server) compactRows() {
	s.t.Helper()
	s.flag("compaction_force_small_rowset_tradeoff", "true") // in this order: a validator refuses others
	s.flag("compaction_small_rowset_tradeoff", "0.5")
	s.flag("compaction_minimum_improvement", "0.0001")
	s.let([]string{"CompactRowSetsOp"}, "enable_rowset_compaction")
}

// kill kills both servers and the client at once, like a power cut.
func (s *server) kill() {
	s.t.Helper()
	for _, p := range []string{"tserver", "master"} {
		f := filepath.Join(s.dir, p+".pid")
		b, err := os.ReadFile(f)
		if err != nil {
			s.t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil || pid < 2 {
			s.t.Fatal(f, err)
		}
		syscall.Kill(pid, syscall.SIGKILL)
		for range 100 { // its parent has exited, so another process reaps it
			if syscall.Kill(pid, 0) != nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		os.Remove(f)
	}
	s.java.Process.Kill()
	s.java.Wait()
	s.java, s.running = nil, false
}

// copyDir copies a directory as an administrator would, with cp and holes preserved.
func copyDir(t testing.TB, from, to string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", "--sparse=auto", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	return to
}
