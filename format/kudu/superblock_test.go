package kudu

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

const goldenSuper = "testdata/log/wal/tablet-meta/"

func superblocks(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, dir := range []string{goldenSuper, "testdata/file/wal/tablet-meta/"} {
		for name, b := range loadTree(t, dir, "") {
			out[name] = b
		}
	}
	return out
}

func parseSuper(b []byte) (*meta.Tablet, error) {
	return meta.ReadSuperblock(context.Background(), store.NewMemory(map[string][]byte{"s": b}), "s", pbc.Options{})
}

// TestSuperblockDamage: any flipped bit of a superblock is reported, and everything that can still be read is right; a
// truncated superblock is lost.
func TestSuperblockDamage(t *testing.T) {
	for name, b := range superblocks(t) {
		whole, err := parseSuper(b)
		if err != nil || len(whole.Notes) > 0 {
			t.Fatal(err, whole.Notes)
		}
		want := dump(whole)
		step := 1
		if name[0] != 'e' { // one of them wholly
			step = 37
		}
		for i := 0; i < len(b); i += step {
			x := bytes.Clone(b)
			x[i] ^= 1 << (i % 8)
			got, err := parseSuper(x)
			if err != nil {
				if pbc.SpanOf(err).Object != "s" {
					t.Fatalf("byte %d: %v", i, err)
				}
				continue
			}
			if len(got.Notes) == 0 {
				t.Fatalf("%s: byte %d: not reported", name, i)
			}
			if got.Notes = nil; dump(got) != want {
				t.Fatalf("%s: byte %d: a different superblock", name, i)
			}
		}
		for n := 0; n < len(b); n += step {
			if _, err := parseSuper(b[:n]); !errors.Is(err, fault.Corrupt) {
				t.Fatalf("%s: cut at %d: %v", name, n, err)
			}
		}
		if got, err := parseSuper(append(bytes.Clone(b), "and more"...)); err != nil || len(got.Notes) != 1 {
			t.Errorf("%v, %v", err, got.Notes)
		}
	}
}

// The span of a block reference has the bytes of the reference.
func TestBlockRefSpans(t *testing.T) {
	n := 0
	for name, b := range superblocks(t) {
		tb, err := parseSuper(b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tb.RowSets {
			for _, r := range tb.RowSets[i].Blocks() {
				at := b[r.Off : r.Off+int64(r.Len)]
				if !bytes.HasSuffix(at, pb.AppendFixed64(nil, 1, r.ID)) {
					t.Errorf("%s: block %d is not at %d: %x", name, r.ID, r.Off, at)
				}
				n++
			}
		}
	}
	if n < 20 {
		t.Errorf("%d references", n)
	}
}

// superMessage returns a superblock with one rowset, to which fields can be added.
func superMessage(more ...[]byte) []byte {
	column := func(id uint64, name string, typ uint64, key, null bool) []byte {
		return pb.AppendBool(pb.AppendBool(pb.AppendUint(pb.AppendString(pb.AppendUint(nil, 1, id), 2, name), 3,
			typ), 4, key), 5, null)
	}
	block := func(id uint64) []byte { return pb.AppendFixed64(nil, 1, id) }
	schema := pb.AppendMessage(pb.AppendMessage(nil, 1, column(0, "k", 7, true, false)), 1,
		column(1, "v", 8, false, true))
	rs := pb.AppendInt(pb.AppendUint(nil, 1, 3), 2, -1)
	rs = pb.AppendMessage(rs, 3, pb.AppendInt(pb.AppendMessage(nil, 2, block(11)), 4, 0))
	rs = pb.AppendMessage(rs, 3, pb.AppendInt(pb.AppendMessage(nil, 2, block(12)), 4, 1))
	rs = pb.AppendMessage(rs, 4, pb.AppendMessage(nil, 2, block(13)))
	rs = pb.AppendMessage(rs, 5, pb.AppendMessage(nil, 2, block(14)))
	rs = pb.AppendMessage(pb.AppendMessage(rs, 6, block(15)), 7, block(16))
	rs = pb.AppendInt(pb.AppendBytes(pb.AppendBytes(rs, 8, []byte("a")), 9, []byte("b")), 10, 42)
	rs = pb.AppendString(rs, 99, "from a later version")
	b := pb.AppendString(pb.AppendString(nil, 1, "table"), 2, "tablet")
	b = pb.AppendMessage(pb.AppendInt(b, 3, 5), 6, rs)
	b = pb.AppendUint(pb.AppendMessage(pb.AppendString(b, 7, "name"), 8, schema), 9, 2)
	return append(b, bytes.Join(more, nil)...)
}

// A superblock with all fields, which no real one has, and unknown ones.
func TestSuperblockFields(t *testing.T) {
	block := func(id uint64) []byte { return pb.AppendFixed64(nil, 1, id) }
	txn := pb.AppendMessage(pb.AppendInt(nil, 1, 7), 2,
		pb.AppendBool(pb.AppendInt(pb.AppendInt(nil, 2, 100), 3, 99), 4, true))
	m := superMessage(
		pb.AppendUint(nil, 10, 3), pb.AppendMessage(nil, 11, block(21)), pb.AppendMessage(nil, 11, block(22)),
		pb.AppendMessage(nil, 12, pb.AppendInt(pb.AppendInt(nil, 1, 4), 2, 5)),
		pb.AppendMessage(nil, 15, pb.AppendString(pb.AppendString(nil, 1, "dir1"), 1, "dir2")),
		pb.AppendBool(nil, 16, true),
		pb.AppendMessage(nil, 17, pb.AppendBool(pb.AppendInt(pb.AppendInt(nil, 1, 60), 2, -3), 3, true)),
		pb.AppendString(nil, 18, "dim"), pb.AppendUint(nil, 19, 1),
		pb.AppendMessage(nil, 20, txn), pb.AppendMessage(nil, 77, []byte("?")), pb.AppendFixed32(nil, 78, 1),
		pb.AppendBytes(nil, 4, nil), pb.AppendBytes(nil, 5, nil),
	)
	x, err := parseSuper(container(2, "kudu.tablet.TabletSuperBlockPB", m))
	if err != nil {
		t.Fatal(err)
	}
	rs := x.RowSets[0]
	if x.State != meta.TabletTombstoned || len(x.Orphaned) != 2 || x.Orphaned[1].ID != 22 ||
		*x.TombstonedAt != (meta.OpID{Term: 4, Index: 5}) || !slices.Equal(x.DataDirs, []string{"dir1", "dir2"}) ||
		!x.CountsLive || x.Extra != (meta.ExtraConfig{HistoryMaxAge: 60, Priority: -3, PrioritySet: true,
		DisableCompaction: true}) || x.Dimension != "dim" || !x.TxnTable ||
		x.Txns[7] != (meta.Txn{CommitTimestamp: 100, CommitMVCC: 99, Flushed: true}) || x.LastDurableMRS != 5 ||
		x.SchemaVersion != 2 {
		t.Errorf("%s", dump(x))
	}
	if b, ok := rs.Block(1); !ok || b.ID != 12 || rs.ID != 3 || rs.LastDurableDMS != -1 || rs.Redo[0].ID != 13 ||
		rs.Undo[0].ID != 14 || rs.Bloom.ID != 15 || rs.Adhoc.ID != 16 ||
		string(rs.MinKey) != "a" || string(rs.MaxKey) != "b" || rs.LiveRows != 42 || x.Rows() != 42 {
		t.Errorf("%s", dump(rs))
	}
	if _, ok := rs.Block(2); ok {
		t.Error("a block of a column that is not there")
	}
	var kinds []string
	for _, b := range rs.Blocks() {
		kinds = append(kinds, b.Kind)
	}
	if strings.Join(kinds, " ") != "column column redo undo bloom adhoc-index" {
		t.Error(kinds)
	}
	var cover region.Coverage
	c := wire.NewCursor(m, fault.Span{Object: "m", Len: int64(len(m))}, "").Trace(cover.Add, 0)
	if new(meta.Tablet).Parse(c); c.Err() != nil {
		t.Fatal(c.Err())
	}
	if gaps, overlaps := cover.Check(fault.Span{Object: "m", Len: int64(len(m))}); len(gaps)+len(overlaps) > 0 {
		t.Errorf("gaps %v, overlaps %v", gaps, overlaps)
	}
}

// Required fields must be there, and every error has a place.
func TestSuperblockRefusals(t *testing.T) {
	for name, m := range map[string][]byte{
		"nothing": {},
		"no schema": pb.AppendString(pb.AppendString(pb.AppendString(nil, 1, "table"), 2, "tablet"), 7,
			"name"),
		"rowset without id": superMessage(pb.AppendMessage(nil, 6, pb.AppendInt(nil, 2, 1))),
		"column of no block": superMessage(pb.AppendMessage(nil, 6,
			pb.AppendMessage(pb.AppendInt(pb.AppendUint(nil, 1, 3), 2, -1), 3, nil))),
		"delta of no block": superMessage(pb.AppendMessage(nil, 6,
			pb.AppendMessage(pb.AppendInt(pb.AppendUint(nil, 1, 3), 2, -1), 4, nil))),
		"wrong wire type": superMessage(pb.AppendUint(nil, 6, 1)),
		"cut":             superMessage()[:30],
		"nameless column": superMessage(pb.AppendMessage(nil, 8,
			pb.AppendMessage(nil, 1, pb.AppendUint(nil, 3, 7)))),
		"typeless column": superMessage(pb.AppendMessage(nil, 8,
			pb.AppendMessage(nil, 1, pb.AppendString(nil, 2, "x")))),
		"decimal of nothing": superMessage(pb.AppendMessage(nil, 8,
			pb.AppendMessage(nil, 1, pb.AppendUint(pb.AppendString(nil, 2, "x"), 3, 15)))),
		"short default": superMessage(pb.AppendMessage(nil, 8,
			pb.AppendMessage(nil, 1, pb.AppendBytes(pb.AppendUint(pb.AppendString(nil, 2, "x"), 3, 5), 6,
				[]byte("123"))))),
		"no such column": superMessage(pb.AppendMessage(nil, 14,
			pb.AppendMessage(nil, 2, pb.AppendMessage(nil, 1, pb.AppendInt(nil, 1, 9))))),
		"no buckets": superMessage(pb.AppendMessage(nil, 14,
			pb.AppendMessage(nil, 1, pb.AppendMessage(nil, 1, pb.AppendInt(nil, 1, 0))))),
		"bad buckets":        superMessage(pb.AppendMessage(nil, 13, pb.AppendBytes(nil, 1, []byte{0xff}))),
		"range without rows": superMessage(pb.AppendMessage(nil, 14, pb.AppendMessage(nil, 5, nil))),
		"range of nothing": superMessage(pb.AppendMessage(nil, 14,
			pb.AppendMessage(nil, 5, pb.AppendMessage(nil, 1, pb.AppendBytes(nil, 2, []byte{6, 3, 0, 1, 2}))))),
	} {
		_, err := parseSuper(container(2, "kudu.tablet.TabletSuperBlockPB", m))
		if !errors.Is(err, fault.Corrupt) || pbc.SpanOf(err).Object != "s" || pbc.SpanOf(err).Off < 16 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConsensus(t *testing.T) {
	ctx := context.Background()
	dir := "testdata/log/wal/consensus-meta/"
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatal(err)
	}
	for _, e := range entries {
		m, notes, err := meta.ReadConsensus(ctx, store.Local{}, filepath.Join(dir, e.Name()), pbc.Options{})
		if err != nil || len(notes) > 0 || m.Term != 1 || len(m.Peers) != 1 ||
			m.Peers[0] != (meta.Peer{UUID: "bf8c3a5072f14eda900a745e7a4d880c", Voter: true,
				Address: "127.0.0.1:27150"}) || m.Index != -1 || m.VotedFor != m.Peers[0].UUID {
			t.Errorf("%s, %v, %v", dump(m), notes, err)
		}
	}
	// a damaged one is a finding, and the tablet is read
	f := openOne(t, edit(t, "log", func(files map[string][]byte) {
		b := files["srv/wal/consensus-meta/"+entries[0].Name()]
		b[len(b)-9] ^= 1
	}), "srv")
	if n := len(mustTablets(t, f)); n != 4 || codesIn(f) != "kudu.cmeta.damaged" {
		t.Errorf("%d tablets, %s", n, codesIn(f))
	}
	// a damaged superblock costs its tablet; no superblock names its blocks then
	f = openOne(t, edit(t, "log", func(files map[string][]byte) {
		b := files["srv/wal/tablet-meta/e231c66227dd49ef833943949158dbbc"]
		b[len(b)-9] ^= 1
		files["srv/wal/tablet-meta/e231c66227dd49ef833943949158dbbc.kudutmp.x"] = b
	}), "srv")
	tablets := mustTablets(t, f)
	unnamed, err := f.Unnamed(ctx, tablets)
	if len(tablets) != 3 || codesIn(f) != "kudu.superblock.damaged" || len(unnamed) != 5 || err != nil {
		t.Errorf("%d tablets, %s, %d blocks, %v", len(tablets), codesIn(f), len(unnamed), err)
	}
}

func TestArraySchema(t *testing.T) {
	col := pb.AppendUint(pb.AppendString(pb.AppendUint(nil, 1, 4), 2, "a"), 3, 21)
	col = pb.AppendMessage(pb.AppendBool(col, 5, true), 15, pb.AppendMessage(nil, 1, pb.AppendUint(nil, 1, 5)))
	m := pb.AppendMessage(nil, 1, col)
	c := wire.NewCursor(m, fault.Span{Object: "m", Len: int64(len(m))}, "")
	s := meta.ParseSchema(c)
	if c.Err() != nil || !s.Columns[0].Array || s.Columns[0].Type != cfile.Int32 ||
		s.Columns[0].TypeText() != "int32 1d-array" {
		t.Fatalf("%v %s", c.Err(), dump(s))
	}
	f, err := s.Columns[0].Field()
	if err != nil || f.Type.String() != "list<item: int32, nullable>" || !f.Nullable {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := (&meta.Column{Name: "x", Type: 21}).Field(); !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
}

func FuzzSuperblock(f *testing.F) {
	for _, b := range superblocks(f) {
		if r, err := pbc.Open(context.Background(), mustSource(b), "s", pbc.Options{}); err == nil {
			if rec, err := r.Next(context.Background()); err == nil {
				f.Add(rec.Data)
			}
		}
	}
	f.Add(superMessage())
	f.Fuzz(func(t *testing.T, m []byte) {
		c := wire.NewCursor(m, fault.Span{Object: "m", Len: int64(len(m))}, "").Trace(func(region.Node) {}, 0)
		x := &meta.Tablet{}
		x.Parse(c)
		if err := c.Err(); err != nil {
			if !errors.Is(err, fault.Corrupt) || pbc.SpanOf(err).Object != "m" {
				t.Fatal(err)
			}
			return
		}
		x.Partitioning.Text(&x.Schema, &x.Partition)
		x.Partitioning.SchemaText(&x.Schema)
		x.Schema.Arrow()
		meta.Missing([]*meta.Tablet{x})
		x.Schema.KeyText(m)
		for i := range x.RowSets {
			x.RowSets[i].Blocks()
		}
	})
}

func mustSource(b []byte) store.Source {
	src, err := store.NewMemory(map[string][]byte{"s": b}).Open(context.Background(), "s")
	if err != nil {
		panic(err)
	}
	return src
}
