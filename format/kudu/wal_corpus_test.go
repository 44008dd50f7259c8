package kudu

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/klauspost/compress/zstd"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/kudugen"
	"stoa/store"
	"stoa/wire"
)

// untar reads a packed directory of the corpus into memory.
func untar(t testing.TB, name string) *store.Memory {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return store.NewMemory(files)
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse {
			if files[strings.TrimPrefix(h.Name, "./")], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// tserver opens the tablet server of a full directory of the corpus.
func tserver(t testing.TB, tree store.Tree) *fs.FS {
	t.Helper()
	ls, err := fs.FindServers(context.Background(), tree, "tserver", fs.FSOptions{})
	if err != nil || len(ls) != 1 || ls[0].WALDir == "" {
		t.Fatalf("%v, %v", ls, err)
	}
	f, err := fs.OpenFS(context.Background(), tree, ls[0], fs.FSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// expected returns the rows of a table at a phase, as the generator's client read them.
func expected(t testing.TB, dir, table, phase string) (cols []kudugen.Column, rows [][]kudugen.Cell) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "expected", "schemas.json"))
	var all map[string][]kudugen.Column
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "expected", table+"."+phase+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err = kudugen.ParseRows(z, all[table])
	if err != nil {
		t.Fatal(err)
	}
	return all[table], rows
}

// snapshots returns the hybrid times of a run's phases, in order.
func snapshots(t testing.TB, dir, run string) (out []struct {
	Phase string
	HT    uint64
}) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "expected", "snapshots."+run+".json"))
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// cellMap is a row by column id. A missing column was added later.
type cellMap map[uint32]kudugen.Cell

// timeline is a row's history.
type timeline struct {
	base    cellMap // nil: the row was never inserted here
	time    uint64  // of the insertion
	changes []wal.LoggedChange
}

func cellsOf(t testing.TB, b []byte) cellMap {
	t.Helper()
	out := cellMap{}
	for c := wire.NewCursor(b, fault.Span{}, ""); c.Left() > 0; {
		id := c.Uvarint32("id")
		n := int(c.Uvarint32("size"))
		var v kudugen.Cell
		if n > 0 {
			v = append(kudugen.Cell{}, c.Bytes("value", n-1)...)
		}
		if c.Err() != nil {
			t.Fatal(c.Err())
		}
		out[id] = v
	}
	return out
}

// at returns the row at a time; nil if it does not exist then.
func (l *timeline) at(t testing.TB, time uint64) cellMap {
	row := cellMap{}
	for k, v := range l.base {
		row[k] = v
	}
	live := l.base != nil && l.time < time
	for _, c := range l.changes {
		if c.Time >= time {
			continue
		}
		switch c.List[0] {
		case wal.ChangeDelete:
			live = false
			continue
		case wal.ChangeReinsert:
			live = true
		}
		for k, v := range cellsOf(t, c.List[1:]) {
			row[k] = v
		}
	}
	if !live {
		return nil
	}
	return row
}

// compare compares rows by key with the expected ones.
func compare(t testing.TB, what string, sc *meta.Schema, got map[string]cellMap, cols []kudugen.Column,
	want [][]kudugen.Cell) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
	}
	bad := 0
	for _, w := range want {
		key := keyOf(t, sc, w)
		row, ok := got[key]
		for i, c := range cols {
			v, there := row[uint32(c.ID)]
			if !there {
				if d := sc.Columns[i].ReadDefault; d != nil {
					v = kudugen.Cell(d)
				}
			}
			if ok && (v == nil) == (w[i] == nil) && bytes.Equal(v, w[i]) {
				continue
			}
			if bad++; bad < 5 {
				t.Errorf("%s: row %x, column %s: %x, want %x (there: %t)", what, key, c.Name, v, w[i], ok)
			}
			if !ok {
				break
			}
		}
	}
}

func keyOf(t testing.TB, sc *meta.Schema, row []kudugen.Cell) string {
	t.Helper()
	values := make([][]byte, sc.NumKeys)
	for i := range values {
		values[i] = row[i]
	}
	k, err := sc.Key(nil, values)
	if err != nil {
		t.Fatal(err)
	}
	return string(k)
}

// TestCorpusWALHoldsEverything: a log of which nothing was removed has the whole history: replayed as if nothing had
// been flushed, it yields every table at every snapshot.
func TestCorpusWALHoldsEverything(t *testing.T) {
	dir := corpusDir(t)
	compared := 0
	for run, manifest := range map[string]string{"fs_file": "file_ck", "fs_log": "log_ck"} {
		f := tserver(t, untar(t, filepath.Join(dir, run, "full_with_wal.tar.zst")))
		times := snapshots(t, dir, manifest)
		rows := map[string]map[string]*timeline{}
		var schemas = map[string]*meta.Schema{}
		for _, tb := range mustTablets(t, f) {
			name, _, _ := strings.Cut(tb.Table, ".")
			if rows[name] == nil {
				rows[name], schemas[name] = map[string]*timeline{}, &tb.Schema
			}
			wholeLog(t, f, tb, rows[name])
		}
		for name, byKey := range rows {
			for _, s := range times {
				if s.Phase != "final" && !(strings.HasPrefix(name, "d_") && name != "d_alter") {
					continue
				}
				got := map[string]cellMap{}
				for k, l := range byKey {
					if row := l.at(t, s.HT); row != nil {
						got[k] = row
					}
				}
				cols, want := expected(t, dir, name, s.Phase)
				compare(t, fmt.Sprintf("%s %s.%s", run, name, s.Phase), schemas[name], got, cols, want)
				compared++
			}
		}
	}
	if compared != 2*(24+5*6) {
		t.Errorf("%d tables and snapshots were compared", compared)
	}
	t.Logf("%d tables and snapshots are equal to what the logs say", compared)
}

// wholeLog replays a tablet's log as if nothing had been flushed.
func wholeLog(t testing.TB, f *fs.FS, tb *meta.Tablet, into map[string]*timeline) {
	t.Helper()
	all := *tb
	all.LastDurableMRS, all.RowSets = -1, nil
	for i := range 200 {
		all.RowSets = append(all.RowSets, meta.RowSet{ID: uint64(i), LastDurableDMS: -1})
	}
	var keys []string
	l, err := wal.Replay(context.Background(), f, &all,
		func(_ context.Context, rs uint64, key []byte) (int64, bool, error) {
			keys = append(keys, string(key))
			return int64(len(keys)) - 1, true, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range l.Findings {
		// this is how a row appears that was deleted from its rowset and inserted again
		if x.Code != "kudu.wal.change.lost" || !strings.Contains(x.Message, "exists already") &&
			!strings.Contains(x.Message, "more of this kind") {
			t.Errorf("%s: %s at %s: %s", tb.Table, x.Code, x.At, x.Message)
		}
	}
	for _, r := range l.Rows {
		into[string(r.Key)] = &timeline{cellsOf(t, r.Cells), r.Time, r.Changes}
	}
	for _, cs := range l.Changes {
		for _, c := range cs {
			r := into[keys[c.Row]]
			if r == nil {
				t.Fatalf("%s: a change of row %x, which was never inserted", tb.Table, keys[c.Row])
			}
			r.changes = append(r.changes, c)
		}
	}
	for _, r := range into {
		slices.SortStableFunc(r.changes, func(a, b wal.LoggedChange) int { return cmp.Compare(a.Time, b.Time) })
	}
}

// TestCorpusWALAddsWhatIsNotFlushed: only the log of d_wal has changes that were not flushed: with them, the rows at p4
// become the final ones. The logs of all other tablets add nothing.
func TestCorpusWALAddsWhatIsNotFlushed(t *testing.T) {
	dir := corpusDir(t)
	for run, manifest := range map[string]string{"fs_file": "file_ck", "fs_log": "log_ck"} {
		f := tserver(t, untar(t, filepath.Join(dir, run, "full_with_wal.tar.zst")))
		times := snapshots(t, dir, manifest)
		tablets, found := mustTablets(t, f), false
		for _, tb := range tablets {
			keys := rowsetKeys(t, f, tb)
			l, err := wal.Replay(context.Background(), f, tb, lookupIn(keys))
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range l.Findings {
				t.Errorf("%s: %s at %s: %s", tb.Table, x.Code, x.At, x.Message)
			}
			if l.Last.Index == 0 || l.LastTime == 0 {
				t.Errorf("%s: the last operation is %s at %d", tb.Table, l.Last, l.LastTime)
			}
			if name, _, _ := strings.Cut(tb.Table, "."); name != "d_wal" {
				if len(l.Rows) > 0 || len(l.Changes) > 0 {
					t.Errorf("%s: %d rows, %d rowsets changed", tb.Table, len(l.Rows), len(l.Changes))
				}
				continue
			}
			found = true
			cols, want := expected(t, dir, "d_wal", "final")
			_, before := expected(t, dir, "d_wal", "p4")
			got := map[string]cellMap{}
			for _, w := range before {
				row := cellMap{}
				for i, c := range cols {
					row[uint32(c.ID)] = w[i]
				}
				got[keyOf(t, &tb.Schema, w)] = row
			}
			n := 0
			for rs, cs := range l.Changes {
				for _, c := range cs {
					key := ""
					for k, row := range keys[rs] {
						if row == c.Row {
							key = k
						}
					}
					if c.Time >= times[len(times)-1].HT || c.Time < times[len(times)-2].HT {
						t.Errorf("a change at %d", c.Time)
					}
					if row := (&timeline{got[key], 0, []wal.LoggedChange{c}}).at(t, ^uint64(0)); row != nil {
						got[key] = row
					} else {
						delete(got, key)
					}
					n++
				}
			}
			for _, r := range l.Rows {
				if row := (&timeline{cellsOf(t, r.Cells), r.Time, r.Changes}).at(t, ^uint64(0)); row != nil {
					got[string(r.Key)] = row
				}
				n++
			}
			compare(t, run+" d_wal", &tb.Schema, got, cols, want)
			if len(l.Rows) != 50 || n != 125 {
				t.Errorf("%d rows, %d in all", len(l.Rows), n)
			}
		}
		if !found || len(tablets) != 27 {
			t.Errorf("%d tablets, d_wal: %t", len(tablets), found)
		}
	}
}

// rowsetKeys returns the encoded keys of each rowset with their ordinals. The tablet's key must be an int64, as it is
// in all tables whose logs have changes of rowsets.
func rowsetKeys(t testing.TB, f *fs.FS, tb *meta.Tablet) map[uint64]map[string]int64 {
	t.Helper()
	out := map[uint64]map[string]int64{}
	if tb.Schema.NumKeys != 1 || tb.Schema.Columns[0].Type != cfile.Int64 {
		return out
	}
	ctx := context.Background()
	for i := range tb.RowSets {
		rs := &tb.RowSets[i]
		b, _ := rs.Block(tb.Schema.Columns[0].ID)
		p, err := f.PlaceOf(ctx, tb, b)
		if err != nil {
			t.Fatal(err)
		}
		src, err := f.OpenBlock(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := cfile.OpenReader(ctx, src, p.At.Object, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		it, err := r.SeekToOrdinal(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		out[rs.ID] = map[string]int64{}
		for it.Ordinal() < r.Len() {
			row := it.Ordinal()
			a, err := it.Next(ctx, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range a.(*array.Int64).Int64Values() {
				k, err := cfile.AppendKey(nil, cfile.Int64, binary.LittleEndian.AppendUint64(nil, uint64(v)), true)
				if err != nil {
					t.Fatal(err)
				}
				out[rs.ID][string(k)] = row + int64(i)
			}
			a.Release()
		}
		it.Close()
		src.Close()
	}
	return out
}

func lookupIn(keys map[uint64]map[string]int64) wal.KeyLookup {
	return func(_ context.Context, rs uint64, key []byte) (int64, bool, error) {
		row, ok := keys[rs][string(key)]
		return row, ok, nil
	}
}
