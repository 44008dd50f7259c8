package kudufs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/kudufs"
	"stoa/store"
)

// TestDamagedClusters rescues random clusters: tables with replicas on up to three servers, which flushed differently
// or missed changes, and of which files were damaged, removed or copied. The generator knows every state of every row:
//
//   - a key is in the output of its table at most once, with a state that the row had;
//   - with status 0, each row is there in its last state, and no other;
//   - so it is with any status, if a server of the table has everything, and nothing of it was harmed.
//
// STOA_SEED and STOA_ROUNDS choose others.
func TestDamagedClusters(t *testing.T) {
	seed, rounds := uint64(1), 40
	if testing.Short() {
		rounds = 6
	}
	for name, p := range map[string]func(n uint64){"STOA_SEED": func(n uint64) { seed = n },
		"STOA_ROUNDS": func(n uint64) { rounds = int(n) }} {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			p(n)
		}
	}
	tally := map[string]int{}
	// 1009: tablets read from two servers, which have given the same number to different blocks
	// 1294, 1438: a damaged dictionary, whose cells another server has
	for _, s := range append([]uint64{1009, 1294, 1438}, upTo(seed, rounds)...) {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			c := &cluster{T: t, r: rand.New(rand.NewPCG(s, 20)), dir: filepath.Join(t.TempDir(), "place"), tally: tally}
			for k := range 1 + c.r.IntN(3) {
				c.table(fmt.Sprintf("t%d", k))
			}
			for range c.r.IntN(5) {
				c.harm()
			}
			c.check()
			if t.Failed() {
				t.Logf("what was done:\n%s", strings.Join(c.done, "\n"))
			}
		})
	}
	t.Log(tally)
}

// upTo returns n seeds.
func upTo(first uint64, n int) (out []uint64) {
	for i := range n {
		out = append(out, first+uint64(i))
	}
	return out
}

// cluster is a random cluster, and what was done to it.
type cluster struct {
	*testing.T
	r      *rand.Rand
	dir    string
	tables []*drawn
	done   []string
	tally  map[string]int
}

// drawn is a table: the states of each row, "" for one that is deleted, and the directories of its servers.
type drawn struct {
	name    string
	states  map[int64][]string
	servers []string
	behind  map[string]bool // servers that lack the last changes
	harmed  map[string]bool
	changed bool // by REDO files, of whose operations there is no log
}

func (c *cluster) note(what string, args ...any) {
	c.tally[strings.Fields(what)[0]]++
	c.done = append(c.done, fmt.Sprintf(what, args...))
}

func stateOf(n int64, v string) string { return fmt.Sprintf("%d %s", n, v) }

// table writes a table to its servers.
func (c *cluster) table(name string) {
	d := &drawn{name: name, states: map[int64][]string{}, behind: map[string]bool{}, harmed: map[string]bool{}}
	c.tables = append(c.tables, d)
	rows := c.r.IntN(300)
	if c.r.IntN(6) == 0 {
		rows = 0
	}
	for _, k := range c.r.Perm(rows) {
		d.states[int64(k)] = []string{stateOf(int64(k)*7, strings.Repeat("v", k%5)+fmt.Sprint(k%11))}
	}
	buckets := []int{0, 2, 3}[c.r.IntN(3)]
	servers := 1 + c.r.IntN(3)
	changed := c.r.IntN(2) == 0
	var peers []string
	for i := range servers {
		peers = append(peers, fmt.Sprintf("%s%031x@127.0.0.1:%d", name[1:], i+1, 7050+i))
	}
	same := c.r.IntN(2) == 0
	size := int64(1 << 20)
	for i := range servers {
		if !changed && (i == 0 || !same) {
			size = []int64{1 << 20, 4000, 1500}[c.r.IntN(3)]
		}
		out := filepath.Join(c.TempDir(), "out")
		c.write(out, d, same, kudufs.WriteOptions{Table: name, Key: []string{"k"}, Buckets: buckets,
			Server: peers[i][:32], Peers: peers, RowSetSize: size})
		dir := filepath.Join(c.dir, name, fmt.Sprintf("s%d", i+1))
		c.must(os.MkdirAll(filepath.Dir(dir), 0o777))
		c.must(os.Rename(filepath.Join(out, "tserver"), dir))
		d.servers = append(d.servers, dir)
	}
	c.note("table %s: %d rows, %d buckets, %d servers, the same rowsets: %v", name, rows, buckets, servers, same)
	if changed && rows > 0 {
		d.changed = true
		c.change(d)
	}
}

func (c *cluster) must(err error) {
	if err != nil {
		c.Helper()
		c.Fatal(err)
	}
}

// write writes the first states of a table's rows.
func (c *cluster) write(out string, d *drawn, sorted bool, o kudufs.WriteOptions) {
	number := arrow.PrimitiveTypes.Int64
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: number}, {Name: "n", Type: number},
		{Name: "v", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	w, err := stoa.Create(c.Context(), out, sc, stoa.CreateOptions{Formats: []format.Format{kudufs.Format},
		To: "kudu-fs", Typed: o})
	c.must(err)
	keys := slices.Sorted(maps.Keys(d.states))
	if !sorted {
		c.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	for part := range slices.Chunk(keys, 50) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for _, k := range part {
			n, v, _ := strings.Cut(d.states[k][0], " ")
			b.Field(0).(*array.Int64Builder).Append(k)
			number, _ := strconv.ParseInt(n, 10, 64)
			b.Field(1).(*array.Int64Builder).Append(number)
			b.Field(2).(*array.StringBuilder).Append(v)
		}
		rec := b.NewRecordBatch()
		c.must(w.Write(c.Context(), rec))
		rec.Release()
	}
	_, err = w.Close(c.Context())
	c.must(err)
}

// change updates and deletes rows of a table, in two REDO files a tablet; some servers lack the second one. Each tablet
// has one rowset.
func (c *cluster) change(d *drawn) {
	behind := -1
	if len(d.servers) > 1 && c.r.IntN(2) == 0 {
		behind = c.r.IntN(len(d.servers))
		d.behind[d.servers[behind]] = true
		c.note("behind %s: server %d", d.name, behind+1)
	}
	for file := range 2 {
		gone := map[int64]bool{} // by key: deleted in this file
		set := map[int64]int64{}
		for _, k := range slices.Sorted(maps.Keys(d.states)) {
			was := d.states[k][len(d.states[k])-1]
			if was == "" || c.r.IntN(3) > 0 {
				continue
			}
			if gone[k] = c.r.IntN(3) == 0; gone[k] {
				d.states[k] = append(d.states[k], "")
				continue
			}
			set[k] = int64(c.r.IntN(1e6)) + 1e6*int64(file+1)
			_, v, _ := strings.Cut(was, " ")
			d.states[k] = append(d.states[k], stateOf(set[k], v))
		}
		for i, dir := range d.servers {
			if file == 0 || i != behind {
				c.redo(dir, uint64(file+1)<<40, set, gone)
			}
		}
	}
}

// redo adds a REDO file to each tablet of a server that has rows which change.
func (c *cluster) redo(dir string, at uint64, set map[int64]int64, gone map[int64]bool) {
	ls, err := kudu.FindServers(c.Context(), store.Local{}, dir, kudu.FSOptions{})
	c.must(err)
	f, err := kudu.OpenFS(c.Context(), store.Local{}, ls[0], kudu.FSOptions{})
	c.must(err)
	tablets, err := f.Tablets(c.Context())
	c.must(err)
	next := uint64(1)
	for p, err := range f.AllBlocks(c.Context()) {
		c.must(err)
		next = max(next, p.ID+1)
	}
	for _, tb := range tablets {
		if len(tb.RowSets) == 0 {
			continue
		}
		var b bytes.Buffer
		w, err := cfile.NewDeltaWriter(&b, false, cfile.WriterOptions{})
		c.must(err)
		changes := 0
		for row, k := range c.keys(dir, tb) {
			var l cfile.ChangeList
			switch n, ok := set[k]; {
			case ok:
				l.Update().Set(uint32(tb.Schema.Columns[1].ID), binary.LittleEndian.AppendUint64(nil, uint64(n)))
			case gone[k]:
				l.Delete()
				tb.RowSets[0].LiveRows--
			default:
				continue
			}
			changes++
			c.must(w.Add(uint32(row), at+uint64(row)<<12, &l))
		}
		if changes == 0 {
			continue
		}
		_, err = w.Close()
		c.must(err)
		rs := &tb.RowSets[0]
		rs.Redo = append(rs.Redo, meta.BlockRef{ID: next})
		rs.LastDurableDMS++
		name := filepath.Join(dir, "data", fmt.Sprintf("00/00/00/%016d", next))
		next++
		c.must(os.WriteFile(name, b.Bytes(), 0o666))
		c.must(os.WriteFile(filepath.Join(dir, "tablet-meta", tb.ID),
			pbc.Append(nil, "kudu.tablet.TabletSuperBlockPB", tb.Append(nil)), 0o666))
	}
}

// keys returns the keys of a tablet's only rowset, in its order: deleted rows are among them, so they are read from the
// column's file.
func (c *cluster) keys(dir string, tb *meta.Tablet) (out []int64) {
	name := filepath.Join(dir, "data", fmt.Sprintf("00/00/00/%016d", tb.RowSets[0].Columns[0].ID))
	tab, err := stoa.Open(c.Context(), name, stoa.OpenOptions{From: "cfile"})
	c.must(err)
	defer tab.Close()
	for b, err := range tab.Scan(c.Context(), stoa.ScanSpec{}) {
		c.must(err)
		out = append(out, b.Column(0).(*array.Int64).Int64Values()...)
	}
	return out
}

// harm damages, removes or copies something of a server of a table.
func (c *cluster) harm() {
	d := c.tables[c.r.IntN(len(c.tables))]
	at := c.r.IntN(len(d.servers))
	dir := d.servers[at]
	files := func(below string) (out []string) {
		filepath.WalkDir(filepath.Join(dir, below), func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && filepath.Base(name) != "block_manager_instance" {
				out = append(out, name)
			}
			return nil
		})
		return out
	}
	one := func(below string) string {
		all := files(below)
		if len(all) == 0 {
			return ""
		}
		return all[c.r.IntN(len(all))]
	}
	below := []string{"data", "data", "data", "tablet-meta", "consensus-meta", "wals", "instance"}[c.r.IntN(7)]
	name := one(below)
	switch what := c.r.IntN(8); {
	case what == 0:
		to := filepath.Join(c.dir, "copies", fmt.Sprint(len(c.done)))
		c.must(os.CopyFS(to, os.DirFS(dir)))
		c.note("copied %s", dir)
		return
	case what == 1 && len(d.servers) > 1 && c.r.IntN(2) == 0:
		c.must(os.RemoveAll(dir))
		c.note("removed %s", dir)
	case what == 2:
		for _, name := range files("tablet-meta") {
			c.must(os.Remove(name))
		}
		c.note("without superblocks: %s", dir)
	case name == "":
		return
	case what < 5:
		b, err := os.ReadFile(name)
		c.must(err)
		if len(b) == 0 {
			return
		}
		k := c.r.IntN(len(b))
		b[k] ^= byte(1 + c.r.IntN(255))
		c.must(os.WriteFile(name, b, 0o666))
		c.note("flipped %s[%d]", name, k)
	case what == 5:
		info, err := os.Stat(name)
		c.must(err)
		c.must(os.Truncate(name, c.r.Int64N(info.Size()+1)))
		c.note("cut %s", name)
	default:
		c.must(os.Remove(name))
		c.note("deleted %s", name)
	}
	d.harmed[dir] = true
}

// check rescues the cluster, and compares what was saved with what the rows were.
func (c *cluster) check() {
	out := filepath.Join(c.TempDir(), "saved")
	var stdout, stderr bytes.Buffer
	status, _ := verbs.Run(c.Context(), []string{"rescue", c.dir, "-o", out, "-q"}, nil, &stdout, &stderr)
	c.tally[fmt.Sprintf("status %d", status)]++
	if status != 0 && status != 3 {
		c.Errorf("got status %d, want 0 or 3: %s", status, &stderr)
		return
	}
	for _, d := range c.tables {
		got := c.saved(out, d)
		whole := status == 0
		for _, dir := range d.servers {
			whole = whole || !d.harmed[dir] && !d.behind[dir]
		}
		missing, late := 0, 0
		for k, states := range d.states {
			last := states[len(states)-1]
			if got[k] != last {
				if got[k] == "" {
					missing++
				} else {
					late++
				}
			}
			if !slices.Contains(states, got[k]) && got[k] != "" {
				c.Errorf("%s: key %d: got %q, want one of %q", d.name, k, got[k], states)
			}
			delete(got, k)
		}
		if whole && missing+late > 0 {
			c.Errorf("%s, status %d: got %d rows missing, %d not in their last state, want none, as there is an "+
				"intact server\n%s", d.name, status, missing, late, &stdout)
		}
		if len(got) > 0 {
			c.Errorf("%s: got %d rows with keys that the table never had", d.name, len(got))
		}
	}
	c.mend()
	for _, args := range [][]string{{"census", c.dir}, {"ls", c.dir}, {"history", c.dir}, {"verify", c.dir}} {
		other, err := verbs.Run(c.Context(), append(args, "-q"), nil, &stdout, &stderr)
		if other != 0 && other != 3 && !(args[0] == "history" && status == 3) {
			c.Errorf("%s: got status %d, want 0 or 3: %v", args[0], other, err)
		}
		if args[0] == "verify" && status == 0 && other == 3 {
			c.tally["verify finds what cost nothing"]++
		}
	}
}

// mend mends the damaged servers. Each server that was written must be one on which verify finds no error; if nothing
// was harmed, none is written; and a table with an intact server must be whole on every server that was written.
func (c *cluster) mend() {
	out := filepath.Join(c.TempDir(), "mended")
	var stdout, stderr bytes.Buffer
	status, _ := verbs.Run(c.Context(), []string{"rescue", "--in-kind", c.dir, "-o", out, "-q"}, nil, &stdout, &stderr)
	if status != 0 && status != 3 {
		c.Errorf("--in-kind: got status %d, want 0 or 3: %s", status, &stderr)
		return
	}
	if strings.Contains(stdout.String(), "wrong in what was written") {
		c.Errorf("--in-kind: got %s, want no error", &stdout)
	}
	servers, _ := filepath.Glob(filepath.Join(out, "*"))
	harmed := 0
	for _, d := range c.tables {
		if harmed += len(d.harmed); d.changed {
			harmed++ // its logs lack operations
		}
	}
	if harmed == 0 && len(servers) > 0 {
		c.Errorf("--in-kind: got %v, want nothing, as nothing was harmed", servers)
	}
	for _, server := range servers {
		c.tally["mended servers"]++
		for _, d := range c.tables {
			intact := slices.ContainsFunc(d.servers, func(dir string) bool { return !d.harmed[dir] && !d.behind[dir] })
			if d.changed || !intact || !strings.HasPrefix(filepath.Base(server), d.name[1:]) {
				continue
			}
			got := c.rowsOf(server + "#" + d.name)
			wrong := 0
			for k, states := range d.states {
				if got[k] != states[len(states)-1] {
					wrong++
				}
				delete(got, k)
			}
			if wrong > 0 || len(got) > 0 {
				c.Errorf("--in-kind: %s: got %d wrong rows of %s, and %d others, want none: a server is intact",
					server, wrong, d.name, len(got))
			}
		}
	}
}

// saved returns the states of the rows in a table's output, by key.
func (c *cluster) saved(out string, d *drawn) map[int64]string {
	name := filepath.Join(out, d.name+".parquet")
	if _, err := os.Stat(name); err != nil {
		return map[int64]string{}
	}
	return c.rowsOf(name)
}

// rowsOf returns the states of the rows of an intact table, by key.
func (c *cluster) rowsOf(name string) map[int64]string {
	got := map[int64]string{}
	tab, err := stoa.Open(c.Context(), name, stoa.OpenOptions{})
	if err != nil {
		c.Error(err)
		return got
	}
	defer tab.Close()
	for b, err := range tab.Scan(c.Context(), stoa.ScanSpec{Columns: []string{"k", "n", "v"}}) {
		c.must(err)
		k, n, v := b.Column(0).(*array.Int64), b.Column(1).(*array.Int64), b.Column(2).(*array.String)
		for i := range k.Len() {
			if _, ok := got[k.Value(i)]; ok {
				c.Errorf("%s: key %d comes twice", name, k.Value(i))
			}
			got[k.Value(i)] = stateOf(n.Value(i), v.Value(i))
		}
	}
	return got
}
