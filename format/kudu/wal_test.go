package kudu

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/codec"
	"stoa/internal/kudugen"
	"stoa/internal/pb"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/store"
)

const (
	goldenInt8  = "c3f631e19af44f00bb1082d149777f73"
	goldenAlter = "dd2267a0b9b24eb7ab636b24881ec9a5"
)

// logFS returns a server with only logs and superblocks.
func logFS(tree store.Tree) *fs.FS {
	return &fs.FS{Layout: fs.Layout{WALDir: "w", MetaDir: "w"}, Tree: tree, Options: fs.FSOptions{}}
}

func golden(t testing.TB) map[string][]byte { return loadTree(t, "testdata/wal", "w") }

func goldenTablet(t testing.TB, f *fs.FS, id string) *meta.Tablet {
	t.Helper()
	tb, err := f.Tablet(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// The two logs in testdata yield the rows of their tables, one of which was altered in between.
func TestWALGolden(t *testing.T) {
	b, err := os.ReadFile("testdata/wal/schemas.json")
	var schemas map[string][]kudugen.Column
	if err == nil {
		err = json.Unmarshal(b, &schemas)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := logFS(store.NewMemory(golden(t)))
	for name, id := range map[string]string{"key_int8": goldenInt8, "d_alter": goldenAlter} {
		tb := goldenTablet(t, f, id)
		rows := map[string]*timeline{}
		wholeLog(t, f, tb, rows)
		got := map[string]cellMap{}
		for k, l := range rows {
			if row := l.at(t, ^uint64(0)); row != nil {
				got[k] = row
			}
		}
		z, err := os.ReadFile(filepath.Join("testdata/wal", name+".final.jsonl.gz"))
		if err != nil {
			t.Fatal(err)
		}
		zr, err := gzip.NewReader(bytes.NewReader(z))
		if err != nil {
			t.Fatal(err)
		}
		want, err := kudugen.ParseRows(zr, schemas[name])
		if err != nil || len(want) < 200 {
			t.Fatal(len(want), err)
		}
		compare(t, name, &tb.Schema, got, schemas[name], want)
	}
}

// asIfNothingFlushed changes a tablet so that no change in its log counts as flushed.
func asIfNothingFlushed(tb *meta.Tablet) *meta.Tablet {
	x := *tb
	x.LastDurableMRS, x.RowSets = -1, []meta.RowSet{{ID: 0, LastDurableDMS: -1}}
	return &x
}

func never(context.Context, uint64, []byte) (int64, bool, error) { return 0, false, nil }

func replayed(t testing.TB, tb *meta.Tablet, segments ...[]byte) *wal.Logged {
	t.Helper()
	files := map[string][]byte{}
	for i, s := range segments {
		if s != nil {
			files[fmt.Sprintf("w/wals/%s/wal-%09d", tb.ID, i+1)] = s
		}
	}
	return replayTree(t, tb, files, never)
}

func replayTree(t testing.TB, tb *meta.Tablet, files map[string][]byte, lookup wal.KeyLookup) *wal.Logged {
	t.Helper()
	l, err := wal.Replay(context.Background(), logFS(store.NewMemory(files)), tb, lookup)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// codesOf returns the codes of a log's findings, sorted and without duplicates.
func codesOf(l *wal.Logged) string {
	var out []string
	for _, x := range l.Findings {
		out = append(out, strings.TrimPrefix(x.Code, "kudu.wal."))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func segmentOf(t testing.TB, id string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/wal/wals/" + id + "/wal-000000001")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// subset reports whether the rows of part are rows of whole, each with a prefix of its changes.
func subset(part, whole *wal.Logged) bool {
	all := map[string]wal.LoggedRow{}
	for _, r := range whole.Rows {
		all[string(r.Key)] = r
	}
	for _, r := range part.Rows {
		w, ok := all[string(r.Key)]
		if !ok || !bytes.Equal(r.Cells, w.Cells) || r.Time != w.Time || len(r.Changes) > len(w.Changes) {
			return false
		}
		for i, c := range r.Changes {
			if !bytes.Equal(c.List, w.Changes[i].List) {
				return false
			}
		}
	}
	return true
}

// batchEnds returns the offsets at which the batches of a segment end; the first element is where they begin.
func batchEnds(t testing.TB, b []byte) []int64 {
	t.Helper()
	src, err := store.NewMemory(map[string][]byte{"s": b}).Open(context.Background(), "s")
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := wal.Open(context.Background(), src, "s", pbc.Options{}, cfile.LZ4)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int64{r.Start}
	for {
		x, err := r.Next(context.Background())
		if err != nil {
			return ends
		}
		ends = append(ends, x.At.End())
	}
}

// TestWALTornAnywhere: a truncated log yields the operations before the cut, and the cut is reported unless it is
// between two batches.
func TestWALTornAnywhere(t *testing.T) {
	f := logFS(store.NewMemory(golden(t)))
	tb := asIfNothingFlushed(goldenTablet(t, f, goldenInt8))
	b := segmentOf(t, goldenInt8)
	whole := replayed(t, tb, b)
	if len(whole.Rows) != 208 || len(whole.Findings) != 0 {
		t.Fatalf("%d rows, %s", len(whole.Rows), codesOf(whole))
	}
	ends := batchEnds(t, b)
	for n := range b {
		for _, tail := range []int{0, 5000} { // cut, and with preallocated space after the cut
			l := replayed(t, tb, append(slices.Clip(b[:n]), make([]byte, tail)...))
			if !subset(l, whole) {
				t.Fatalf("cut at %d: rows that were not written", n)
			}
			i, between := slices.BinarySearch(ends, int64(n))
			switch codes := codesOf(l); {
			case int64(n) < ends[0]:
				if len(l.Rows) != 0 {
					t.Fatalf("cut at %d: %d rows", n, len(l.Rows))
				}
			case between && codes != "" && codes != "uncommitted":
				t.Fatalf("cut at %d, between two batches: %s", n, codes)
			case between:
			case tail > 0 && allZero(b[n:ends[i]]): // unchanged: these bytes were zeros
			case !strings.Contains(codes, "torn") && !allZero(b[ends[i-1]:n]):
				t.Fatalf("cut at %d, in a batch: %q", n, codes)
			}
		}
	}
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// A flipped bit after the header, which has no checksum, is reported with its place, and no row is wrong.
func TestWALFlips(t *testing.T) {
	f := logFS(store.NewMemory(golden(t)))
	for _, id := range []string{goldenInt8, goldenAlter} {
		tb := asIfNothingFlushed(goldenTablet(t, f, id))
		b := segmentOf(t, id)
		whole := replayed(t, tb, b)
		ends := batchEnds(t, b)
		flips := 3000
		if testing.Short() {
			flips = 600
		}
		step := max(len(b)/flips, 1)
		for i := 0; i < len(b); i += step {
			x := bytes.Clone(b)
			x[i] ^= 1 << (i % 8)
			l := replayed(t, tb, x)
			if int64(i) < ends[0] {
				continue // it must not panic
			}
			if id == goldenInt8 && !subset(l, whole) {
				t.Fatalf("byte %d: other rows", i)
			}
			k, _ := slices.BinarySearch(ends, int64(i)+1)
			placed := false
			for _, y := range l.Findings {
				placed = placed || y.At.Off == ends[k-1] && y.At.End() == ends[k]
			}
			if !placed {
				t.Fatalf("byte %d, in the batch at %d: %+v", i, ends[k-1], l.Findings)
			}
		}
	}
}

// TestWALHeaderFlips: a flipped bit in the header, which has no checksum, changes no row or is reported, because the
// superblock has the same schema.
func TestWALHeaderFlips(t *testing.T) {
	tb := asIfNothingFlushed(goldenTablet(t, logFS(store.NewMemory(golden(t))), goldenInt8))
	b := segmentOf(t, goldenInt8)
	whole := replayed(t, tb, b)
	reported := 0
	for i := range batchEnds(t, b)[0] * 8 {
		x := bytes.Clone(b)
		x[i/8] ^= 1 << (i % 8)
		l := replayed(t, tb, x)
		if !subset(l, whole) || len(l.Rows) < len(whole.Rows) && len(l.Findings) == 0 {
			t.Fatalf("bit %d of byte %d: other rows, %+v", i%8, i/8, l.Findings)
		}
		if strings.Contains(codesOf(l), "header") {
			reported++
		}
	}
	if reported < 600 {
		t.Errorf("%d flips are reported", reported)
	}
}

// Schemas of headers are compared with the superblock's, those of ALTER_SCHEMA, and each other.
func TestWALHeaderSchema(t *testing.T) {
	s := logTable()
	other := logTable()
	other.Columns[2].WriteDefault = le32(8)
	wider := logTable()
	wider.Columns[2].Type = cfile.Int64
	tb := logTablet(s)
	tb.SchemaVersion = 2
	insert := func(index int64, v int32) [][]byte {
		var r rowsPB
		w := s
		r.add(&w, wal.RowInsert, le32(v))
		return [][]byte{received(index, wal.OpWrite, 5, r.request(&w)), committed(index, wal.OpWrite, inMRS(5))}
	}
	alter := func(index int64, s meta.Schema, version uint32) [][]byte {
		m := pb.AppendMessage(nil, 2, schemaPB(&s, true))
		m = pb.AppendUint(m, 3, uint64(version))
		return [][]byte{received(index, wal.OpAlterSchema, 6, m), committed(index, wal.OpAlterSchema)}
	}
	seg := func(s meta.Schema, version uint32, seq uint64, ops ...[][]byte) []byte {
		b := segment(s, version, seq, cfile.LZ4, false, slices.Concat(ops...)...)
		return append(b, footer(int64(2*len(ops)), 1, 9)...)
	}
	for name, x := range map[string]struct {
		segments [][]byte
		codes    string
		n        int32 // the default in the last row
	}{
		"whole":                       {[][]byte{seg(s, 2, 1, insert(1, 1))}, "", 7},
		"another than the superblock": {[][]byte{seg(other, 2, 1, insert(1, 1))}, "header", 7},
		"a version that is not":       {[][]byte{seg(s, 10, 1, insert(1, 1))}, "", 7},
		"older":                       {[][]byte{seg(other, 1, 1, insert(1, 1))}, "", 8},
		"older, of another type":      {[][]byte{seg(wider, 1, 1)}, "header", 0},
		"altered": {[][]byte{seg(other, 1, 1, alter(1, s, 2), insert(2, 1)),
			seg(s, 2, 2, insert(3, 2))}, "", 7},
		"another than altered": {[][]byte{seg(other, 2, 1, alter(1, other, 3)), seg(s, 3, 2, insert(2, 2))},
			"header schema", 8},
		"the segments differ": {[][]byte{seg(other, 1, 1), seg(s, 1, 2, insert(1, 1))}, "header", 8},
		"no ALTER_SCHEMA":     {[][]byte{seg(s, 2, 1), seg(other, 3, 2, insert(1, 1))}, "header", 7},
		"a restart": {[][]byte{seg(other, 1, 1, alter(1, s, 0), alter(2, other, 1),
			insert(3, 1))}, "", 8},
		"too late a version": {[][]byte{seg(other, 9, 1, alter(1, s, 1), alter(2, s, 2), insert(3, 1))},
			"header schema", 8},
	} {
		l := replayed(t, tb, x.segments...)
		if codesOf(l) != x.codes {
			t.Errorf("%s: %+v", name, l.Findings)
		}
		if x.n == 0 {
			continue
		}
		if len(l.Rows) == 0 || !bytes.Equal(cellsOf(t, l.Rows[len(l.Rows)-1].Cells)[12], le32(x.n)) {
			t.Errorf("%s: %s", name, textOf(l))
		}
	}
}

// The nodes of a segment cover all its bytes.
func TestWALDescribe(t *testing.T) {
	segments := map[string][]byte{}
	for _, id := range []string{goldenInt8, goldenAlter} {
		segments[id] = segmentOf(t, id)
	}
	b := segmentOf(t, goldenInt8)
	segments["ahead"] = append(bytes.Clone(b), make([]byte, 1000)...)
	segments["closed"] = append(bytes.Clone(b), footer(7, 1, 9)...)
	for name, b := range segments {
		coverage(t, name, b, false)
	}
	coverage(t, "torn", b[:len(b)-7], false)
	x := bytes.Clone(b)
	x[batchEnds(t, b)[2]-1] ^= 1
	coverage(t, "damaged", x, true)
	coverage(t, "none", []byte("kudulog_"), true)
}

func coverage(t testing.TB, name string, b []byte, damaged bool) {
	t.Helper()
	var c region.Coverage
	n := 0
	var gap int64
	o := pbc.Options{Trace: func(x region.Node) {
		c.Add(x)
		n++
		if x.Kind == region.Gap {
			gap += x.At.Len
		}
	}}
	err := wal.Describe(context.Background(), store.NewMemory(map[string][]byte{"s": b}), "s", o)
	if (err != nil) != damaged {
		t.Errorf("%s: %v", name, err)
	}
	gaps, overlaps := c.Check(fault.Span{Object: "s", Len: int64(len(b))})
	var lost int64
	for _, g := range gaps {
		lost += g.Len
	}
	if lost != gap || len(overlaps) > 0 || n == 0 || gap > 0 != damaged {
		t.Errorf("%s: gaps %v (%d bytes), overlaps %v, %d nodes", name, gaps, gap, overlaps, n)
	}
}

// A segment on its own is recognized, listed, described and verified.
func TestWALFormat(t *testing.T) {
	ctx := context.Background()
	b := segmentOf(t, goldenInt8)
	x := bytes.Clone(b)
	x[len(x)-5] ^= 1 // in the last batch
	tree := store.NewMemory(map[string][]byte{"whole": b, "bad": x,
		"closed": append(bytes.Clone(b), footer(3, 1, 2)...), "other": []byte("kuducfl2 is something else")})
	for name, want := range map[string]format.Match{"whole": format.Certain, "bad": format.Certain,
		"other": format.No, "nothing": format.No} {
		if m, err := WALFormat.Probe(ctx, format.Target{Tree: tree, Name: name}); m != want || err != nil {
			t.Errorf("%s: %d, %v", name, m, err)
		}
	}
	for e, err := range WALFormat.List(ctx, format.Target{Tree: tree, Name: "whole"}) {
		if err != nil || e.Kind != "log segment" || e.Bytes != 1773 || e.Meta[0].Value != goldenInt8 ||
			e.Meta[3].Value != "lz4" {
			t.Errorf("%+v, %v", e, err)
		}
	}
	for name, want := range map[string]string{"whole": "", "bad": "torn", "closed": "footer"} {
		l := &wal.Logged{}
		for f := range WALFormat.Verify(ctx, format.Target{Tree: tree, Name: name}, format.OpenOptions{}) {
			l.Findings = append(l.Findings, f)
		}
		if codesOf(l) != want {
			t.Errorf("%s: %+v", name, l.Findings)
		}
		n := 0
		for _, err := range WALFormat.Describe(ctx, format.Target{Tree: tree, Name: name}, format.DescribeOptions{}) {
			if n++; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n < 100 {
			t.Errorf("%s: %d nodes", name, n)
		}
	}
}

// The rest of the tests write logs.

// logTable is the schema of the logs that are written here.
func logTable() meta.Schema {
	s := meta.Schema{Columns: []meta.Column{
		{ID: 10, Name: "k", Type: cfile.Int32, Key: true},
		{ID: 11, Name: "s", Type: cfile.String, Nullable: true},
		{ID: 12, Name: "n", Type: cfile.Int32, WriteDefault: le32(7)},
		{ID: 13, Name: "fixed", Type: cfile.Int8, Nullable: true, Immutable: true},
	}}
	s.Index()
	return s
}

func logTablet(s meta.Schema) *meta.Tablet {
	return &meta.Tablet{ID: "t", Schema: s, State: meta.TabletReady, LastDurableMRS: 4,
		RowSets: []meta.RowSet{{ID: 3, LastDurableDMS: 1}}}
}

func le32(v int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }

func schemaPB(s *meta.Schema, ids bool) (out []byte) {
	for i := range s.Columns {
		c := &s.Columns[i]
		var m []byte
		if ids {
			m = pb.AppendUint(m, 1, uint64(c.ID))
		}
		m = pb.AppendString(m, 2, c.Name)
		if typ := uint64(c.Type); c.Array {
			m = pb.AppendUint(m, 3, 21) // NESTED
			m = pb.AppendMessage(m, 15, pb.AppendMessage(nil, 1, pb.AppendUint(nil, 1, typ)))
		} else {
			m = pb.AppendUint(m, 3, typ)
		}
		m = pb.AppendBool(m, 4, c.Key)
		m = pb.AppendBool(m, 5, c.Nullable)
		if c.ReadDefault != nil && ids {
			m = pb.AppendBytes(m, 6, c.ReadDefault)
		}
		if c.WriteDefault != nil && ids {
			m = pb.AppendBytes(m, 7, c.WriteDefault)
		}
		m = pb.AppendBool(m, 13, c.Immutable)
		m = pb.AppendBool(m, 14, c.AutoIncrement)
		out = pb.AppendMessage(out, 1, m)
	}
	return out
}

// segment makes a segment of tablet t with the given batches.
func segment(s meta.Schema, version uint32, sequence uint64, c cfile.Compression, old bool, batches ...[]byte) []byte {
	return segmentIn("t", s, version, sequence, c, old, batches...)
}

func segmentIn(tablet string, s meta.Schema, version uint32, sequence uint64, c cfile.Compression, old bool,
	batches ...[]byte) []byte {
	m := pb.AppendString(nil, 5, tablet)
	m = pb.AppendUint(m, 6, sequence)
	m = pb.AppendMessage(m, 7, schemaPB(&s, true))
	m = pb.AppendUint(m, 8, uint64(version))
	m = pb.AppendUint(m, 9, uint64(c))
	if old {
		m = pb.AppendUint(pb.AppendUint(m, 1, 1), 2, 0)
	}
	b := append(binary.LittleEndian.AppendUint32([]byte(wal.Magic), uint32(len(m))), m...)
	name := map[cfile.Compression]string{cfile.NoCompression: "none", cfile.LZ4: "lz4", cfile.Snappy: "snappy",
		cfile.Zlib: "zlib"}[c]
	x, _ := codec.ByName(name)
	for _, raw := range batches {
		stored := x.Compress(nil, raw)
		h := binary.LittleEndian.AppendUint32(nil, uint32(len(stored)))
		if !old {
			h = binary.LittleEndian.AppendUint32(h, uint32(len(raw)))
		}
		h = binary.LittleEndian.AppendUint32(h, sum.CRC32C(stored))
		h = binary.LittleEndian.AppendUint32(h, sum.CRC32C(h))
		b = append(append(b, h...), stored...)
	}
	return b
}

func footer(entries, low, high int64) []byte {
	m := pb.AppendInt(pb.AppendInt(pb.AppendInt(nil, 1, entries), 2, low), 3, high)
	return binary.LittleEndian.AppendUint32(append(m, wal.EndMagic...), uint32(len(m)))
}

func opID(term, index int64) []byte { return pb.AppendInt(pb.AppendInt(nil, 1, term), 2, index) }

// received returns a batch with an operation at time index*10.
func received(index int64, op int32, field int, body []byte) []byte {
	m := pb.AppendMessage(nil, 1, opID(1, index))
	m = pb.AppendFixed64(m, 2, uint64(index)*10)
	m = pb.AppendUint(m, 4, uint64(op))
	if field > 0 {
		m = pb.AppendMessage(m, field, body)
	}
	return pb.AppendMessage(nil, 1, pb.AppendMessage(pb.AppendUint(nil, 1, 1), 2, m))
}

func committed(index int64, op int32, results ...[]byte) []byte {
	m := pb.AppendUint(nil, 1, uint64(op))
	m = pb.AppendMessage(m, 2, opID(1, index))
	var res []byte
	for _, r := range results {
		res = pb.AppendMessage(res, 1, r)
	}
	if results != nil {
		m = pb.AppendMessage(m, 3, res)
	}
	return pb.AppendMessage(nil, 1, pb.AppendMessage(pb.AppendUint(nil, 1, 2), 3, m))
}

func inMRS(mrs int64) []byte { return pb.AppendMessage(nil, 3, pb.AppendInt(nil, 1, mrs)) }
func inDMS(rs, dms int64) []byte {
	return pb.AppendMessage(nil, 3, pb.AppendInt(pb.AppendInt(nil, 2, rs), 3, dms))
}
func inTxn(txn int64) []byte {
	return pb.AppendMessage(nil, 3, pb.AppendInt(pb.AppendInt(nil, 1, 0), 4, txn))
}
func failed() []byte { return pb.AppendMessage(nil, 2, pb.AppendInt(nil, 1, 6)) }

// logCell is a value in a client's row: unset if it is nil, NULL if it is null.
type logCell []byte

var null = logCell("NULL")

// rowsPB makes a RowOperationsPB.
type rowsPB struct{ rows, indirect []byte }

func (r *rowsPB) add(s *meta.Schema, typ byte, cells ...logCell) *rowsPB {
	n := (len(s.Columns) + 7) / 8
	set, nulls := make([]byte, n), make([]byte, n)
	var values []byte
	nullable := false
	for i := range s.Columns {
		nullable = nullable || s.Columns[i].Nullable
		if i >= len(cells) || cells[i] == nil {
			continue
		}
		set[i/8] |= 1 << (i % 8)
		switch {
		case bytes.Equal(cells[i], null):
			nulls[i/8] |= 1 << (i % 8)
		case s.Columns[i].Type.IsBinary(), s.Columns[i].Array:
			values = binary.LittleEndian.AppendUint64(values, uint64(len(r.indirect)))
			values = binary.LittleEndian.AppendUint64(values, uint64(len(cells[i])))
			r.indirect = append(r.indirect, cells[i]...)
		default:
			values = append(values, cells[i]...)
		}
	}
	r.rows = append(append(r.rows, typ), set...)
	if nullable {
		r.rows = append(r.rows, nulls...)
	}
	r.rows = append(r.rows, values...)
	return r
}

func (r *rowsPB) request(s *meta.Schema, more ...func([]byte) []byte) []byte {
	m := pb.AppendString(nil, 1, "t")
	m = pb.AppendMessage(m, 2, schemaPB(s, false))
	m = pb.AppendMessage(m, 3, pb.AppendBytes(pb.AppendBytes(nil, 2, r.rows), 3, r.indirect))
	for _, f := range more {
		m = f(m)
	}
	return m
}

// textOf formats the content of a log: rows as key@time{cells}, with their changes.
func textOf(l *wal.Logged) string {
	var b strings.Builder
	list := func(x []byte) {
		for len(x) > 0 {
			id, n := binary.Uvarint(x)
			size, k := binary.Uvarint(x[n:])
			x = x[n+k:]
			if size == 0 {
				fmt.Fprintf(&b, " %d=NULL", id)
				continue
			}
			v := x[:size-1]
			if x = x[size-1:]; len(v) == 4 {
				fmt.Fprintf(&b, " %d=%d", id, int32(binary.LittleEndian.Uint32(v)))
			} else {
				fmt.Fprintf(&b, " %d=%q", id, v)
			}
		}
	}
	change := func(c wal.LoggedChange) {
		fmt.Fprintf(&b, " @%d %s", c.Time, cfile.DeltaOp(c.List[0]))
		list(c.List[1:])
	}
	for _, r := range l.Rows {
		fmt.Fprintf(&b, "%d@%d", int32(binary.BigEndian.Uint32(r.Key)^1<<31), r.Time)
		list(r.Cells)
		for _, c := range r.Changes {
			change(c)
		}
		b.WriteString("\n")
	}
	for rs := range uint64(100) {
		for _, c := range l.Changes[rs] {
			fmt.Fprintf(&b, "rowset %d row %d", rs, c.Row)
			change(c)
			b.WriteString("\n")
		}
	}
	return b.String()
}

// keyIsOrdinal finds row k at ordinal k.
func keyIsOrdinal(_ context.Context, _ uint64, key []byte) (int64, bool, error) {
	return int64(binary.BigEndian.Uint32(key) ^ 1<<31), true, nil
}

func TestWALOperations(t *testing.T) {
	s := logTable()
	k := func(v int32) logCell { return le32(v) }
	one := func(typ byte, cells ...logCell) []byte { return new(rowsPB).add(&s, typ, cells...).request(&s) }
	write := func(i int64, body []byte, results ...[]byte) [][]byte {
		return [][]byte{received(i, wal.OpWrite, 5, body), committed(i, wal.OpWrite, results...)}
	}
	added := logTable()
	// n is another column now
	added.Columns = append(added.Columns[:2:2], meta.Column{ID: 14, Name: "n", Type: cfile.Int32, Nullable: true})
	added.Index()
	alter := pb.AppendUint(pb.AppendMessage(pb.AppendString(nil, 1, "t"), 2, schemaPB(&added, true)), 3, 1)
	txn := func(m []byte) []byte { return pb.AppendInt(m, 7, 77) }
	end := func(kind, time int64) []byte {
		return pb.AppendMessage(nil, 2, pb.AppendInt(pb.AppendInt(pb.AppendInt(nil, 1, kind), 2, 77), 3, time))
	}
	for name, x := range map[string]struct {
		batches [][]byte
		want    string
		codes   string
	}{
		"insert": {write(1, one(wal.RowInsert, k(1), logCell("a"), k(5)), inMRS(5)),
			"1@10 10=1 11=\"a\" 12=5 13=NULL\n", ""},
		"insert with defaults, an empty string, a NULL": {append(write(1, one(wal.RowInsert, k(1), logCell{}),
			inMRS(5)), write(2, one(wal.RowInsertIgnore, k(-2), null), inMRS(5))...),
			"-2@20 10=-2 11=NULL 12=7 13=NULL\n1@10 10=1 11=\"\" 12=7 13=NULL\n", ""},
		"flushed": {write(1, one(wal.RowInsert, k(1)), inMRS(4)), "", ""},
		"failed": {write(1, new(rowsPB).add(&s, wal.RowInsert, k(1)).add(&s, wal.RowInsert, k(2)).request(&s),
			failed(), inMRS(5)), "2@10 10=2 11=NULL 12=7 13=NULL\n", ""},
		"ignored": {append(write(1, one(wal.RowInsert, k(1)), inMRS(5)),
			write(2, new(rowsPB).add(&s, wal.RowInsertIgnore, k(1), logCell("x")).add(&s, wal.RowUpdateIgnore, k(9),
				logCell("x")).add(&s, wal.RowDeleteIgnore, k(9)).request(&s), []byte{}, []byte{}, []byte{})...),
			"1@10 10=1 11=NULL 12=7 13=NULL\n", ""},
		"update, delete, insert again": {slices.Concat(write(1, one(wal.RowInsert, k(1), logCell("a")), inMRS(5)),
			write(2, one(wal.RowUpdate, k(1), null, k(3)), inMRS(5)), write(3, one(wal.RowDelete, k(1)), inMRS(5)),
			write(4, one(wal.RowInsert, k(1), nil, k(4)), inMRS(5)),
			write(5, one(wal.RowUpdateIgnore, k(1), logCell("b"), nil, logCell{9}), inMRS(5))),
			"1@10 10=1 11=\"a\" 12=7 13=NULL @20 update 11=NULL 12=3 @30 delete @40 reinsert 11=NULL 12=4 " +
				"13=NULL @50 update 11=\"b\"\n", ""},
		"upsert": {slices.Concat(write(1, one(wal.RowUpsert, k(1), logCell("a"), nil, logCell{1}), inMRS(5)),
			write(2, one(wal.RowUpsert, k(1), nil, k(3)), inMRS(5)),
			write(3, one(wal.RowUpsertIgnore, k(1), null, nil, logCell{2}), inMRS(5)),
			write(4, one(wal.RowDeleteIgnore, k(1)), inMRS(5)), write(5, one(wal.RowUpsert, k(1)), inMRS(5)),
			write(6, one(wal.RowUpsert, k(1)), []byte{})),
			"1@10 10=1 11=\"a\" 12=7 13=\"\\x01\" @20 update 12=3 @30 update 11=NULL @40 delete @50 reinsert " +
				"11=NULL 12=7 13=NULL\n", ""},
		"rowsets": {slices.Concat(write(1, one(wal.RowUpdate, k(8), logCell("a")), inDMS(3, 1)),
			write(2, one(wal.RowUpdate, k(8), logCell("b")), inDMS(3, 2)),
			write(3, one(wal.RowDelete, k(6)), inDMS(3, 2)),
			// changes of a rowset that was compacted away
			write(4, one(wal.RowUpsert, k(8), nil, k(1)), inDMS(3, 2)), write(5, one(wal.RowDelete, k(8)), inDMS(9, 2)),
			write(6, one(wal.RowUpdate, k(5), null), append(inMRS(4), inDMS(3, 2)...)), // while it was being flushed
			write(7, one(wal.RowUpdate, k(5), logCell("c")), append(inDMS(9, 0), inDMS(3, 3)...))),
			"rowset 3 row 5 @60 update 11=NULL\nrowset 3 row 5 @70 update 11=\"c\"\nrowset 3 row 6 @30 " +
				"delete\nrowset 3 row 8 @20 update 11=\"b\"\nrowset 3 row 8 @40 update 12=1\n", ""},
		"in the order of numbers": {[][]byte{received(1, wal.OpWrite, 5, one(wal.RowInsert, k(1))),
			received(2, wal.OpWrite, 5, one(wal.RowUpdate, k(1), logCell("x"))),
			committed(2, wal.OpWrite, inMRS(5)), received(3, wal.OpNone, 999, nil),
			committed(1, wal.OpWrite, inMRS(5)), committed(3, wal.OpNone)},
			"1@10 10=1 11=NULL 12=7 13=NULL @20 update 11=\"x\"\n", ""},
		"no commit": {append(write(1, one(wal.RowInsert, k(1)), inMRS(5)),
			received(2, wal.OpWrite, 5, one(wal.RowInsert, k(2)))), "1@10 10=1 11=NULL 12=7 13=NULL\n", "uncommitted"},
		"overwritten": {slices.Concat([][]byte{received(1, wal.OpWrite, 5, one(wal.RowInsert, k(1))),
			received(2, wal.OpWrite, 5, one(wal.RowInsert, k(2)))}, write(1, one(wal.RowInsert, k(3)), inMRS(5))),
			"3@10 10=3 11=NULL 12=7 13=NULL\n", ""},
		"altered": {slices.Concat(write(1, one(wal.RowInsert, k(1)), inMRS(5)),
			[][]byte{received(2, wal.OpAlterSchema, 6, alter), committed(2, wal.OpAlterSchema)},
			write(3, new(rowsPB).add(&added, wal.RowInsert, k(2), logCell("b")).request(&added), inMRS(5)),
			write(4, new(rowsPB).add(&added, wal.RowUpdate, k(1), nil, k(9)).request(&added), inMRS(5))),
			"1@10 10=1 11=NULL 12=7 13=NULL @40 update 14=9\n2@30 10=2 11=\"b\" 14=NULL\n", "schema"},
		"an alteration that failed": {slices.Concat([][]byte{received(1, wal.OpAlterSchema, 6, alter),
			committed(1, wal.OpAlterSchema, failed())}, write(2, one(wal.RowInsert, k(1)), inMRS(5))),
			"1@20 10=1 11=NULL 12=7 13=NULL\n", ""},
		"a transaction": {slices.Concat(write(1, new(rowsPB).add(&s, wal.RowInsert, k(1)).request(&s, txn),
			inTxn(77)), write(2, one(wal.RowInsert, k(2)), inMRS(5)),
			[][]byte{received(3, wal.OpParticipant, 9, end(wal.TxnFinalize, 99)), committed(3, wal.OpParticipant)}),
			"1@99 10=1 11=NULL 12=7 13=NULL\n2@20 10=2 11=NULL 12=7 13=NULL\n", ""},
		"an aborted one": {slices.Concat(write(1,
			new(rowsPB).add(&s, wal.RowInsert, k(1)).request(&s, txn), inTxn(77)),
			[][]byte{received(2, wal.OpParticipant, 9, end(wal.TxnAbort, 0)), committed(2, wal.OpParticipant)}), "",
			""},
		"an open one": {write(1, new(rowsPB).add(&s, wal.RowInsert, k(1)).request(&s, txn),
			inTxn(77)), "", "txn.open"},
		"a row that is not there": {write(1, one(wal.RowUpdate, k(1), logCell("x")), inMRS(5)), "", "change.lost"},
		"a gap": {append(write(1, one(wal.RowInsert, k(1)), inMRS(5)),
			write(3, one(wal.RowInsert, k(3)), inMRS(5))...),
			"1@10 10=1 11=NULL 12=7 13=NULL\n3@30 10=3 11=NULL 12=7 13=NULL\n", "gap"},
		"an orphan": {append([][]byte{committed(4, wal.OpWrite, inMRS(5), inMRS(5))},
			write(5, one(wal.RowInsert, k(1)), inMRS(5))...), "1@50 10=1 11=NULL 12=7 13=NULL\n", "orphan"},
		"an orphan that matters not": {append([][]byte{committed(4, wal.OpWrite, inMRS(4), inDMS(3, 0))},
			write(5, one(wal.RowInsert, k(1)), inMRS(5))...), "1@50 10=1 11=NULL 12=7 13=NULL\n", ""},
		"results that do not fit": {write(1, one(wal.RowInsert, k(1)), inMRS(5), inMRS(5)),
			"1@10 10=1 11=NULL 12=7 13=NULL\n", "op.bad"},
		"a column that is not there": {write(1,
			new(rowsPB).add(&added, wal.RowInsert,
				k(2)).request(&meta.Schema{Columns: []meta.Column{{Name: "zz", Type: cfile.Int32}}}), inMRS(5)), "",
			"op.bad"},
	} {
		for _, c := range []cfile.Compression{cfile.NoCompression, cfile.LZ4, cfile.Snappy, cfile.Zlib} {
			for _, old := range []bool{false, true} {
				if old && c != cfile.NoCompression {
					continue
				}
				b := segment(s, 0, 1, c, old, x.batches...)
				l := replayTree(t, logTablet(s), map[string][]byte{"w/wals/t/wal-000000001": b}, keyIsOrdinal)
				if got := textOf(l); got != x.want || codesOf(l) != x.codes {
					t.Errorf("%s (%s, old %t): %q, want %q; %s, want %s: %+v", name, c, old, got, x.want,
						codesOf(l), x.codes, l.Findings)
				}
			}
		}
	}
}

// The auto-incrementing column continues from the number in the request.
func TestWALAutoIncrement(t *testing.T) {
	s := meta.Schema{Columns: []meta.Column{{ID: 1, Name: "k", Type: cfile.Int32, Key: true},
		{ID: 2, Name: "auto_incrementing_id", Type: cfile.Int64, Key: true, AutoIncrement: true}}}
	s.Index()
	r := new(rowsPB).add(&s, wal.RowInsert, le32(1)).add(&s, wal.RowInsert, le32(1)).add(&s, wal.RowUpsert, le32(2),
		binary.LittleEndian.AppendUint64(nil, 500)).add(&s, wal.RowInsert, le32(1))
	body := r.request(&s, func(m []byte) []byte { return pb.AppendMessage(m, 8, pb.AppendInt(nil, 1, 41)) })
	b := segment(s, 0, 1, cfile.LZ4, false, received(1, wal.OpWrite, 5, body),
		committed(1, wal.OpWrite, inMRS(5), inMRS(5), inMRS(5), inMRS(5)))
	l := replayed(t, logTablet(s), b)
	var got []string
	for _, r := range l.Rows {
		text, err := s.KeyText(r.Key)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, text)
	}
	if want := "(int32 k=1, int64 auto_incrementing_id=42)"; len(got) != 4 || len(l.Findings) > 0 {
		t.Fatalf("%v, want like %s; %+v", got, want, l.Findings)
	}
	for i, n := range []string{"42", "43", "501", "500"} {
		if !strings.Contains(got[i], n) {
			t.Errorf("%v", got)
		}
	}
}

// TestWALSegments: a missing or damaged segment is reported, and the others are used.
func TestWALSegments(t *testing.T) {
	s := logTable()
	write := func(i int64) [][]byte {
		return [][]byte{received(i, wal.OpWrite, 5, new(rowsPB).add(&s, wal.RowInsert, le32(int32(i))).request(&s)),
			committed(i, wal.OpWrite, inMRS(5))}
	}
	closed := func(n uint64, from, to int64) []byte {
		var batches [][]byte
		for i := from; i <= to; i++ {
			batches = append(batches, write(i)...)
		}
		return append(segment(s, 0, n, cfile.LZ4, false, batches...), footer(int64(len(batches)), from, to)...)
	}
	a, b, c := closed(1, 1, 3), closed(2, 4, 6),
		segment(s, 0, 3, cfile.LZ4, false, slices.Concat(write(7), write(8))...)
	flip := func(x []byte, i int) []byte {
		x = bytes.Clone(x)
		if i < 0 {
			i += len(x)
		}
		x[i] ^= 0x40
		return x
	}
	for name, x := range map[string]struct {
		segments [][]byte
		rows     int
		codes    string
	}{
		"whole":                 {[][]byte{a, b, c}, 8, ""},
		"only made":             {[][]byte{a, b, c, {}}, 8, ""},
		"only taken in advance": {[][]byte{a, b, c, make([]byte, 9000)}, 8, ""},
		"the first is gone":     {[][]byte{nil, b, c}, 5, ""}, // Kudu deletes segments that it no longer needs
		"one between is gone":   {[][]byte{a, nil, c}, 5, "gap segment.missing"},
		"none":                  {nil, 0, "missing"},
		"a magic":               {[][]byte{a, flip(b, 0), c}, 8, "header"},
		"a header":              {[][]byte{a, flip(b, 13), c}, 8, "header"},
		"a length":              {[][]byte{a, flip(b, 11), c}, 8, "header"},
		"a footer's magic":      {[][]byte{a, flip(b, -5), c}, 8, "damaged"},
		"a footer's length":     {[][]byte{a, flip(b, -2), c}, 8, "damaged footer"},
		"a footer's count": {[][]byte{append(segment(s, 0, 1, cfile.LZ4, false, write(1)...),
			footer(3, 1, 1)...)}, 1, "footer"},
		"another's":               {[][]byte{b}, 3, "header"},
		"no end":                  {[][]byte{a, b[:len(b)-40], c}, 7, "damaged uncommitted"},
		"one that is no log":      {[][]byte{a, []byte("something else, and longer"), c}, 5, "gap header"},
		"a batch of a closed one": {[][]byte{flip(a, int(batchEnds(t, a)[0])+20), b, c}, 7, "damaged orphan"},
		"another batch":           {[][]byte{flip(a, int(batchEnds(t, a)[1])+20), b, c}, 7, "damaged uncommitted"},
		"the header of the first": {[][]byte{flip(a, 13)}, 3, "header"},
	} {
		l := replayed(t, logTablet(s), x.segments...)
		codes := codesOf(l)
		if len(l.Rows) != x.rows || codes != x.codes {
			t.Errorf("%s: %d rows, want %d; %s, want %s: %+v", name, len(l.Rows), x.rows, codesOf(l), x.codes,
				l.Findings)
		}
	}
}

// The header's schema stays valid when later bytes are read.
func TestWALDefaultsStay(t *testing.T) {
	s := logTable()
	long := logCell(bytes.Repeat([]byte("not zero"), wal.Window/4))
	b := segment(s, 0, 1, cfile.NoCompression, false,
		received(1, wal.OpWrite, 5, new(rowsPB).add(&s, wal.RowInsert, le32(1), long).request(&s)),
		committed(1, wal.OpWrite, inMRS(5)),
		received(2, wal.OpWrite, 5, new(rowsPB).add(&s, wal.RowInsert, le32(2)).request(&s)),
		committed(2, wal.OpWrite, inMRS(5)))
	if l := replayed(t, logTablet(s), b); !strings.HasSuffix(textOf(l), "2@20 10=2 11=NULL 12=7 13=NULL\n") {
		t.Error(textOf(l)[len(textOf(l))-100:], l.Findings)
	}
}

// TestWALRecoveryDirectory: if a log was being replayed when the server stopped, that log is read and not the new one
// beside it.
func TestWALRecoveryDirectory(t *testing.T) {
	s := logTable()
	b := segment(s, 0, 1, cfile.LZ4, false,
		received(1, wal.OpWrite, 5, new(rowsPB).add(&s, wal.RowInsert, le32(1)).request(&s)),
		committed(1, wal.OpWrite, inMRS(5)))
	l := replayTree(t, logTablet(s), map[string][]byte{"w/wals/t.recovery/wal-000000001": b,
		"w/wals/t/wal-000000001": segment(s, 0, 1, cfile.LZ4, false)}, never)
	if len(l.Rows) != 1 || len(l.Findings) > 0 {
		t.Errorf("%d rows, %+v", len(l.Rows), l.Findings)
	}
}

// TestWALLookupFails: a rowset whose keys cannot be read loses the changes of its rows, and nothing else.
func TestWALLookupFails(t *testing.T) {
	s := logTable()
	b := segment(s, 0, 1, cfile.LZ4, false,
		received(1, wal.OpWrite, 5, new(rowsPB).add(&s, wal.RowDelete, le32(1)).add(&s, wal.RowDelete,
			le32(2)).request(&s)), committed(1, wal.OpWrite, inDMS(3, 2), inDMS(3, 2)))
	files := map[string][]byte{"w/wals/t/wal-000000001": b}
	l := replayTree(t, logTablet(s), files, func(ctx context.Context, rs uint64, key []byte) (int64, bool, error) {
		if key[3] == 1 {
			return 0, false, fault.Corruptf(fault.Span{Object: "block", Off: 5, Len: 6}, "posidx", "broken")
		}
		return 4, true, nil
	})
	if textOf(l) != "rowset 3 row 4 @10 delete\n" || codesOf(l) != "change.lost" || l.Findings[0].At.Object != "block" {
		t.Errorf("%s %+v", textOf(l), l.Findings)
	}
	if u := l.Unplaced[3]; len(l.Unplaced) != 1 || len(u) != 1 || u[0].Key[3] != 1 || u[0].Changes[0].Time != 10 ||
		u[0].Rows != wal.EveryRow || !errors.Is(u[0].Err, fault.Corrupt) {
		t.Errorf("%+v", l.Unplaced)
	}
	_, err := wal.Replay(context.Background(), logFS(store.NewMemory(files)), logTablet(s),
		func(context.Context, uint64, []byte) (int64, bool, error) { return 0, false, os.ErrPermission })
	if err != os.ErrPermission {
		t.Error(err)
	}
}

// FuzzWAL: no bytes make the parser panic, or allocate out of proportion to the file.
func FuzzWAL(f *testing.F) {
	for _, id := range []string{goldenInt8} {
		f.Add(segmentOf(f, id))
	}
	s := logTable()
	k := new(rowsPB).add(&s, wal.RowInsert, le32(1), logCell("abc")).add(&s, wal.RowUpsert, le32(2), null)
	f.Add(append(segment(s, 0, 1, cfile.NoCompression, false, received(1, wal.OpWrite, 5, k.request(&s)),
		committed(1, wal.OpWrite, inMRS(5), inMRS(5))), footer(2, 1, 1)...))
	f.Add(segment(s, 0, 1, cfile.NoCompression, true, received(1, wal.OpWrite, 5, k.request(&s)),
		committed(1, wal.OpWrite, inMRS(5), inMRS(5))))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, o := range []fs.FSOptions{{}, {NoVerify: true}} {
			o.Limits = format.Limits{Page: 1 << 20}
			dirs := logFS(store.NewMemory(map[string][]byte{"w/wals/t/wal-000000001": b}))
			dirs.Options = o
			if _, err := wal.Replay(context.Background(), dirs, logTablet(s), keyIsOrdinal); err != nil &&
				!strings.Contains(err.Error(), "limit") {
				t.Fatal(err)
			}
		}
		var c region.Coverage
		wal.Describe(context.Background(), store.NewMemory(map[string][]byte{"s": b}), "s",
			pbc.Options{Limits: format.Limits{Page: 1 << 20}, Trace: c.Add})
		if _, overlaps := c.Check(fault.Span{Object: "s", Len: int64(len(b))}); len(overlaps) > 0 {
			t.Fatal(overlaps)
		}
	})
}
