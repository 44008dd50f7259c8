//go:build interop

package kudu

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ---- Kudu's own command.

var fetchOnce = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("./get.sh").Output()
	if err != nil {
		return "", fmt.Errorf("get.sh: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})

func kuduHome(t testing.TB) string {
	t.Helper()
	h, err := fetchOnce()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// kudu runs Kudu's command; its standard error is the error's text.
func kudu(t testing.TB, args ...string) ([]byte, error) {
	home := kuduHome(t)
	cmd := exec.Command(filepath.Join(home, "bin", "kudu"), args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+home+"/lib", "SASL_PATH="+home+"/lib/sasl2")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
		return out.Bytes(), fmt.Errorf("%w: %.500s", err, lines[len(lines)-1])
	}
	return out.Bytes(), nil
}

// workDir returns a new directory: below STOA_INTEROP_DIR, which the script interop/run cleans up, or a temporary one.
func workDir(t testing.TB) string {
	if d := os.Getenv("STOA_INTEROP_DIR"); d != "" {
		d, err := os.MkdirTemp(d, "t-")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return t.TempDir()
}

// blockPath is where the file block manager keeps a block: bits 47–40, 39–32, 31–24 of the id, then the id.
func blockPath(data string, id uint64) string {
	return filepath.Join(data, "data", fmt.Sprintf("%02x", id>>40&255), fmt.Sprintf("%02x", id>>32&255),
		fmt.Sprintf("%02x", id>>24&255), fmt.Sprintf("%016d", id))
}

// ---- A shelf: a formatted directory without tablets, for `fs dump cfile`.

type fileStore struct {
	t    testing.TB
	dir  string
	next atomic.Uint64
}

func newFileStore(t testing.TB) *fileStore {
	s := &fileStore{t: t, dir: workDir(t)}
	if _, err := kudu(t, append([]string{"fs", "format"}, s.flags()...)...); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *fileStore) flags() []string {
	return []string{"--block_manager=file", "--fs_wal_dir=" + s.dir + "/w", "--fs_data_dirs=" + s.dir + "/d"}
}

// put stores a file as a block. The ids are spread, so that the directories stay small.
func (s *fileStore) put(file []byte) uint64 {
	id := s.next.Add(1 << 18)
	p := blockPath(s.dir+"/d", id)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(p, file, 0o644); err != nil {
		s.t.Fatal(err)
	}
	return id
}

// dump has Kudu print a block.
func (s *fileStore) dump(id uint64, flags ...string) (dump, error) {
	out, err := kudu(s.t, append(append([]string{"fs", "dump", "cfile", strconv.FormatUint(id, 10)}, s.flags()...),
		flags...)...)
	if err != nil {
		return dump{}, err
	}
	return parseDump(out)
}

// ---- One master and one tablet server.

type server struct {
	t                     testing.TB
	dir                   string
	master, tserver, tweb string
	manager               string // of blocks: file or log
	split                 bool   // three data directories, and the metadata apart
	env                   []string
	running               bool

	java   *exec.Cmd
	hand   io.WriteCloser
	answer *bufio.Reader
	files  int
}

// quiet keeps the server from flushing or compacting on its own; flushes are switched on when wanted.
var quiet = []string{
	"--enable_flush_memrowset=false", "--enable_flush_deltamemstores=false",
	"--enable_rowset_compaction=false", "--enable_major_delta_compaction=false",
	"--enable_minor_delta_compaction=false",
	"--enable_undo_delta_block_gc=false", "--enable_log_gc=false",
	"--flush_threshold_secs=1", "--flush_threshold_mb=1", "--maintenance_manager_polling_interval_ms=50",
}

func newServer(t testing.TB) *server {
	kuduHome(t)
	s := &server{t: t, dir: workDir(t), manager: "file"}
	var ports [4]string
	var held []net.Listener
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
		ports[i] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	for _, l := range held {
		l.Close()
	}
	s.master, s.tserver, s.tweb = "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1], "127.0.0.1:"+ports[3]
	s.env = append(os.Environ(), "BM=file", "MPORT="+ports[0], "TPORT="+ports[1], "MWEB="+ports[2], "TWEB="+ports[3])
	t.Cleanup(s.stop)
	return s
}

func (s *server) start(flags ...string) {
	s.t.Helper()
	cmd := exec.Command("./start.sh", append([]string{s.dir}, append(append([]string{}, quiet...), flags...)...)...)
	cmd.Env = s.env
	s.running = true
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("start.sh: %v: %s", err, out)
	}
	home := kuduHome(s.t)
	cache := filepath.Dir(filepath.Dir(home))
	s.java = exec.Command("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", cache+"/classes:"+cache+"/dl/*",
		"Drive", s.master)
	s.java.Stderr = os.Stderr
	in, err := s.java.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := s.java.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.java.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.hand, s.answer = in, bufio.NewReader(out)
}

func (s *server) stop() {
	if !s.running {
		return
	}
	s.running = false
	if s.java != nil && s.java.Process != nil {
		s.hand.Close()
		done := make(chan struct{})
		go func(j *exec.Cmd) { j.Wait(); close(done) }(s.java)
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			s.java.Process.Kill()
		}
		s.java = nil
	}
	if out, err := exec.Command("./stop.sh", s.dir).CombinedOutput(); err != nil {
		s.t.Errorf("stop.sh: %v: %s", err, out)
	}
}

// do sends the Java client one command and returns the words after "ok".
func (s *server) do(words ...string) ([]string, error) {
	s.t.Helper()
	if _, err := io.WriteString(s.hand, strings.Join(words, "\t")+"\n"); err != nil {
		s.t.Fatal(err)
	}
	line, err := s.answer.ReadString('\n')
	if err != nil {
		s.t.Fatal("the Java client is gone: ", err)
	}
	line = strings.TrimSpace(line)
	if line != "ok" && !strings.HasPrefix(line, "ok ") {
		return nil, fmt.Errorf("%.600s", line)
	}
	return strings.Fields(line)[1:], nil
}

func (s *server) must(words ...string) []string {
	s.t.Helper()
	a, err := s.do(words...)
	if err != nil {
		s.t.Fatal(words[0], words[1:min(2, len(words))], err)
	}
	return a
}

func (s *server) file(lines []string) string {
	s.files++
	name := filepath.Join(s.dir, fmt.Sprintf("f%d", s.files))
	text := ""
	if len(lines) > 0 {
		text = strings.Join(lines, "\n") + "\n"
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return name
}

func (s *server) lines(name string) []string {
	b, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// create makes a table; Kudu's client knows no DECIMAL32 or AUTO data types, so the words are translated.
func (s *server) create(name string, cols []column) {
	s.t.Helper()
	var spec []string
	for _, c := range cols {
		typ := c.Type
		if strings.HasPrefix(typ, "DECIMAL") {
			typ = "DECIMAL"
		}
		enc := c.Enc
		if enc == "BIT_SHUFFLE" || enc == "" {
			enc = map[string]string{"BIT_SHUFFLE": "BIT_SHUFFLE", "": "AUTO_ENCODING"}[enc]
		}
		comp := c.Comp
		if comp == "" {
			comp = "DEFAULT_COMPRESSION"
		}
		spec = append(spec, fmt.Sprintf("%s\t%s\t%v\t%v\t%s\t%s\t%d\t%d\t%d\t%d", c.Name, typ, c.Key, c.Nullable,
			enc, comp, c.BlockSize, c.Prec, c.Scale, c.Len))
	}
	s.must("create", name, s.file(spec))
}

// write sends rows; the answer is one status per row.
func (s *server) write(name, kind string, rows [][]cell) []string {
	s.t.Helper()
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = wiredRow(r)
	}
	out := s.file(nil)
	s.must("write", name, kind, s.file(lines), out)
	return s.lines(out)
}

func (s *server) mustWrite(name, kind string, rows [][]cell) {
	s.t.Helper()
	for i, st := range s.write(name, kind, rows) {
		if st != "ok" {
			s.t.Fatalf("%s: %s of row %d: %s", name, kind, i, st)
		}
	}
}

// scan returns the rows of a table in key order, at a hybrid time if one is given.
func (s *server) scan(name string, at ...uint64) ([]string, error) {
	out := s.file(nil)
	words := []string{"scan", name, out}
	if len(at) > 0 {
		words = append(words, strconv.FormatUint(at[0], 10))
	}
	if _, err := s.do(words...); err != nil {
		return nil, err
	}
	return s.lines(out), nil
}

// now is the hybrid time of the client's last operation.
func (s *server) now() uint64 {
	n, err := strconv.ParseUint(s.must("time")[0], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *server) flag(name, value string) {
	s.t.Helper()
	if _, err := kudu(s.t, "tserver", "set_flag", s.tserver, name, value, "-force"); err != nil {
		s.t.Fatal(name, err)
	}
}

// metrics returns a metric of each table's tablet: the value of a gauge or counter, or a histogram's number of entries.
func (s *server) metrics(names ...string) map[string]map[string]float64 {
	resp, err := http.Get("http://" + s.tweb + "/metrics?types=tablet&include_schema=false&compact=1&metrics=" +
		strings.Join(names, ","))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var all []struct {
		Attributes map[string]any
		Metrics    []map[string]any
	}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		s.t.Fatal(err)
	}
	out := map[string]map[string]float64{}
	for _, e := range all {
		m := map[string]float64{}
		for _, x := range e.Metrics {
			name, _ := x["name"].(string)
			if v, ok := x["value"].(float64); ok {
				m[name] = v
			} else if v, ok := x["total_count"].(float64); ok {
				m[name] = v
			}
		}
		table, _ := e.Attributes["table_name"].(string)
		out[table] = m
	}
	return out
}

// flush lets the server flush until count of every given table has the metric wanted, and disables flushing again.
func (s *server) flush(what, metric string, want float64, tables ...string) {
	s.t.Helper()
	flag, running := "enable_flush_memrowset", "flush_mrs_running"
	if what == "deltas" {
		flag, running = "enable_flush_deltamemstores", "flush_dms_running"
	}
	s.flag(flag, "true")
	defer s.flag(flag, "false")
	for end := time.Now().Add(120 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		m := s.metrics(metric, running)
		left := 0
		for _, t := range tables {
			if m[t][metric] < want || m[t][running] > 0 {
				left++
			}
		}
		if left == 0 {
			return
		}
	}
	s.t.Fatalf("no flush of %s within two minutes: %v", what, s.metrics(metric, running))
}

func (s *server) flushRows(tables ...string) {
	s.t.Helper()
	s.flush("rows", "num_rowsets_on_disk", 1, tables...)
}

// flushDeltas waits for the n-th flush of deltas of these tables since the server started.
func (s *server) flushDeltas(n int, tables ...string) {
	s.t.Helper()
	s.flush("deltas", "flush_dms_duration", float64(n), tables...)
}

// A block as listed by `kudu fs list`.
type block struct {
	Table, Kind, Column, Encoding, DeltaStats string
	Rowset, ColumnID                          int
	ID                                        uint64
	Values                                    int
}

// blocks lists the tablet server's blocks, by table. The server must be down.
func (s *server) blocks() map[string][]block {
	s.t.Helper()
	out, err := kudu(s.t, "fs", "list", "--columns=table,rowset-id,block-id,block-kind,column,column-id,"+
		"cfile-encoding,cfile-num-values,cfile-delta-stats", "-format=json", "--noh",
		"--block_manager="+s.manager, "--fs_wal_dir="+s.dir+"/tserver/wal", "--fs_data_dirs="+s.dirs("data"),
		"--fs_metadata_dir="+s.dirs("meta"))
	if err != nil {
		s.t.Fatal(err)
	}
	var rows []map[string]string
	if err := json.Unmarshal(out, &rows); err != nil {
		s.t.Fatalf("%v: %.300s", err, out)
	}
	all := map[string][]block{}
	for _, r := range rows {
		b := block{Table: r["table"], Kind: r["block-kind"], Column: r["column"], Encoding: r["cfile-encoding"],
			DeltaStats: r["cfile-delta-stats"]}
		b.Rowset, _ = strconv.Atoi(r["rowset-id"])
		b.ColumnID, _ = strconv.Atoi(r["column-id"])
		b.Values, _ = strconv.Atoi(r["cfile-num-values"])
		if b.ID, err = strconv.ParseUint(r["block-id"], 10, 64); err != nil {
			continue // a tablet without rowsets
		}
		all[b.Table] = append(all[b.Table], b)
	}
	return all
}

// dirs returns the tablet server's data directories, or its metadata directory, which is that of the log if split
// is not set.
func (s *server) dirs(what string) string {
	d := s.dir + "/tserver/"
	switch {
	case what == "meta" && s.split:
		return d + "meta"
	case what == "meta":
		return d + "wal"
	case s.split:
		return d + "data," + d + "disk2," + d + "disk3"
	}
	return d + "data"
}

func (s *server) path(b block) string { return blockPath(s.dir+"/tserver/data", b.ID) }

func (s *server) read(b block) []byte {
	out, err := os.ReadFile(s.path(b))
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// replace replaces a block with another file. The server must be down.
func (s *server) replace(b block, file []byte) {
	s.t.Helper()
	if s.running {
		s.t.Fatal("the server runs")
	}
	if err := os.WriteFile(s.path(b), file, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// ksck has Kudu check and checksum the tables. It waits for tablets that are still starting.
func (s *server) ksck(tables ...string) error {
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(time.Second) {
		out, err := kudu(s.t, "cluster", "ksck", s.master, "--checksum_scan", "--tables="+strings.Join(tables, ","),
			"--ksck_format=plain_full")
		if err == nil {
			return nil
		}
		var why []string
		for l := range strings.SplitSeq(string(out), "\n") {
			if low := strings.ToLower(l); strings.Contains(low, "error") || strings.Contains(low, "corruption") ||
				strings.Contains(low, "failed") {
				why = append(why, strings.TrimSpace(l))
			}
		}
		text := strings.Join(why, "\n")
		if strings.Contains(text, "CFile") || strings.Contains(text, "FAILED:") || time.Now().After(end) {
			return fmt.Errorf("%w\n%.1500s", err, text)
		}
	}
}

// compact has the server merge the row sets of tables until each table has one.
func (s *server) compact(tables ...string) {
	s.t.Helper()
	s.flag("compaction_force_small_rowset_tradeoff", "true") // this order: a validator refuses others
	s.flag("compaction_small_rowset_tradeoff", "0.5")
	s.flag("compaction_minimum_improvement", "0.0001")
	s.flag("enable_rowset_compaction", "true")
	defer s.flag("enable_rowset_compaction", "false")
	left := 0
	for end := time.Now().Add(120 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		m := s.metrics("num_rowsets_on_disk", "compact_rs_running")
		left = 0
		for _, t := range tables {
			if m[t]["num_rowsets_on_disk"] > 1 || m[t]["compact_rs_running"] > 0 {
				left++
			}
		}
		if left == 0 {
			return
		}
	}
	s.t.Errorf("%d of %d tables were not compacted within two minutes", left, len(tables))
}
