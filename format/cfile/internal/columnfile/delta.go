package columnfile

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/internal/pb"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// DeltaOp is the kind of a change.
type DeltaOp uint8

const (
	DeltaUpdate   DeltaOp = ChangeUpdate
	DeltaDelete   DeltaOp = ChangeDelete
	DeltaReinsert DeltaOp = ChangeReinsert
)

func (o DeltaOp) String() string {
	switch o {
	case DeltaUpdate:
		return "update"
	case DeltaDelete:
		return "delete"
	case DeltaReinsert:
		return "reinsert"
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// Delta is one decoded value of a delta file.
type Delta struct {
	Row       int64  // ordinal in the rowset
	Timestamp uint64 // hybrid time
	Op        DeltaOp
	Changes   []DeltaChange // nil for a delete
}

// DeltaChange is a cell's new value.
type DeltaChange struct {
	Column uint32 // id, not position
	Value  []byte // as in a block: fixed-width types little-endian; nil: null
}

// ParseDelta reads a value of a delta file, which c holds exactly:
//
//	row        ordered varint (SQLite 4's)
//	timestamp  ordered varint
//	op         1 update, 2 delete, 3 reinsert
//	changes    of 1 and 3, each: column id varint, size varint (0 NULL, else the length and 1), bytes
//
// Values alias c's bytes. The memory of changes is reused.
func ParseDelta(c *wire.Cursor, changes []DeltaChange) (d Delta) {
	d.Row = int64(ParseOrderedVarint(c, "row"))
	d.Timestamp = ParseOrderedVarint(c, "timestamp")
	switch {
	case c.Err() != nil:
		return d
	case d.Row < 0 || d.Row > 1<<32-1:
		c.Fail(0, 1, "row", "%d does not fit 32 bits", uint64(d.Row))
		return d
	}
	d.Op, d.Changes = parseChangeList(c, changes)
	return d
}

// parseChangeList reads what follows row and timestamp.
func parseChangeList(c *wire.Cursor, changes []DeltaChange) (op DeltaOp, _ []DeltaChange) {
	op = DeltaOp(c.U8("op"))
	switch {
	case c.Err() != nil:
	case op < DeltaUpdate || op > DeltaReinsert:
		c.Fail(c.Pos()-1, 1, "op", "expected update (1), delete (2) or reinsert (3), found %d", op)
	case op == DeltaDelete && c.Left() > 0:
		c.Fail(c.Pos(), c.Left(), "changes", "%d bytes after a delete", c.Left())
	}
	changes = changes[:0]
	for c.Err() == nil && c.Left() > 0 {
		changes = append(changes, parseChange(c))
	}
	return op, changes
}

// parseChange reads one cell of a change list.
func parseChange(c *wire.Cursor) (x DeltaChange) {
	x.Column = c.Uvarint32("column_id")
	at := c.Pos()
	n := c.Uvarint32("size")
	switch {
	case c.Err() != nil || n == 0:
	case int64(n)-1 > int64(c.Left()):
		c.Fail(at, c.Pos()-at, "size", "%d bytes are declared, %d are left", n-1, c.Left())
	default:
		x.Value = c.Bytes("value", int(n)-1)
		if x.Value == nil {
			x.Value = []byte{}
		}
	}
	return x
}

// ParseOrderedVarint is the inverse of AppendOrderedVarint.
func ParseOrderedVarint(c *wire.Cursor, name string) uint64 {
	at := c.Pos()
	rest := c.Rest()
	if len(rest) == 0 || OrderedVarintLen(rest[0]) > len(rest) {
		c.Fail(at, len(rest), name, "an ordered varint does not fit in %d bytes", len(rest))
		return 0
	}
	n := OrderedVarintLen(rest[0])
	b := c.Bytes(name, n)
	var x uint64
	switch {
	case n == 1:
		return uint64(b[0])
	case n == 2:
		return uint64(b[0]-241)<<8 + uint64(b[1]) + 240
	case n == 3:
		return 2288 + uint64(b[1])<<8 + uint64(b[2])
	}
	for _, y := range b[1:] {
		x = x<<8 | uint64(y)
	}
	return x
}

// DeltaStats is the metadata pair deltafilestats: numbers of changes by kind, and min and max of their hybrid times.
type DeltaStats struct {
	Deletes, Reinserts         int64
	MinTimestamp, MaxTimestamp uint64
	Updates                    map[uint32]int64 // number of updated cells by column id
}

// parseDeltaStats reads a DeltaStatsPB.
func parseDeltaStats(c *wire.Cursor) (s DeltaStats) {
	s.Updates = map[uint32]int64{}
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			s.Deletes = r.Int("delete_count")
		case 3:
			s.MinTimestamp = r.Fixed64("min_timestamp")
		case 4:
			s.MaxTimestamp = r.Fixed64("max_timestamp")
		case 5:
			id, n := parseColumnStats(r)
			s.Updates[id] += n
		case 6:
			s.Reinserts = r.Int("reinsert_count")
		default:
			r.Unknown()
		}
	}
	return s
}

// parseColumnStats reads the number of updates of a column.
func parseColumnStats(r *pb.Reader) (id uint32, n int64) {
	m := r.Message("column_stats")
	for r := pb.NewReader(m); r.Next(); {
		switch r.Field() {
		case 1:
			id = uint32(r.Int32("col_id"))
		case 2:
			n = r.Int("update_count")
		default:
			r.Unknown()
		}
	}
	r.Join(m)
	return id, n
}

// DeltaFile is an open delta file.
type DeltaFile struct {
	f        *File
	stats    DeltaStats
	hasStats bool
}

// OpenDelta opens the delta file that is all of src; name is the object in errors.
func OpenDelta(ctx context.Context, src store.Source, name string, o format.OpenOptions) (*DeltaFile, error) {
	return OpenDeltaAt(ctx, src, fault.Span{Object: name, Len: src.Size()}, o)
}

// OpenDeltaAt opens the delta file that is the part at of src. The error is Invalid if it cannot be one.
func OpenDeltaAt(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (*DeltaFile, error) {
	f, err := OpenFile(ctx, src, at, o)
	if err != nil {
		return nil, err
	}
	return NewDelta(f)
}

// NewDelta is the delta file f. The error is Invalid if f cannot be one, Corrupt if its statistics are damaged.
func NewDelta(f *File) (*DeltaFile, error) {
	if why := f.WhyNot(block.KindDelta); why != "" {
		return nil, fault.New(fault.Invalid, f.FootSpan(), "footer", "%s", why)
	}
	s, ok, err := f.DeltaStats()
	return &DeltaFile{f, s, ok}, err
}

// Len is the number of deltas.
func (d *DeltaFile) Len() int64 { return d.f.Footer.NumValues }

// Stats are the file's statistics, if it has any.
func (d *DeltaFile) Stats() (DeltaStats, bool) { return d.stats, d.hasStats }

// Deltas reads deltas in file order. It is not safe for concurrent use.
type Deltas struct {
	values   *BinaryValues
	firstRow int64 // deltas of rows before it are skipped
	cur      []DeltaChange
}

// All returns all deltas.
func (d *DeltaFile) All(ctx context.Context) (*Deltas, error) { return d.SeekRow(ctx, 0) }

// Listed returns the deltas of blocks that recovery found in a damaged file.
func (d *DeltaFile) Listed(blocks []DataBlock) *Deltas {
	return &Deltas{values: &BinaryValues{F: d.f, List: blocks}}
}

// SeekRow returns the deltas of rows from row on. row must fit 32 bits, else the error is Invalid.
func (d *DeltaFile) SeekRow(ctx context.Context, row int64) (*Deltas, error) {
	if row < 0 || row > 1<<32-1 {
		return nil, fault.Invalidf("row %d does not fit 32 bits", row)
	}
	v := &BinaryValues{F: d.f}
	// Keys of delta files are not truncated, and a row may span blocks: it may begin in the last block whose first key
	// is less than the row's.
	if err := v.Seek(ctx, AppendOrderedVarint(nil, uint64(row))); err != nil {
		return nil, err
	}
	return &Deltas{values: v, firstRow: row}, nil
}

// Next returns the next delta, valid until the following call; io.EOF after the last.
func (d *Deltas) Next(ctx context.Context) (Delta, error) {
	for {
		_, c, err := d.values.Next(ctx)
		if err != nil {
			return Delta{}, err
		}
		x := ParseDelta(c, d.cur)
		if c.Err() != nil {
			return Delta{}, c.Err()
		}
		d.cur = x.Changes
		if x.Row >= d.firstRow {
			return x, nil
		}
	}
}

// BinaryValues reads the values of a file without a positional index, in the order of its value index.
type BinaryValues struct {
	F     *File
	List  []DataBlock // blocks that recovery found; they replace the index
	walk  *Walker
	count rowCheck
	n     int // blocks entered
	begun int // number of the first block entered: 0, or 1 if it is not the file's first

	arena vec.Arena
	vals  *vec.Vector
	At    fault.Span // of the block of the last value
	i     int        // index in vals of the next value
}

// Seek moves to the first block that may have a value at or after key.
func (v *BinaryValues) Seek(ctx context.Context, key []byte) error {
	v.walk = v.F.Values()
	if err := v.walk.seek(ctx, key, true); err != nil {
		return err
	}
	for i := range v.walk.Stack {
		if v.walk.Stack[i].I > 0 {
			v.begun = 1
		}
	}
	return nil
}

// Next returns the next value and a cursor over it; io.EOF after the last.
func (v *BinaryValues) Next(ctx context.Context) ([]byte, *wire.Cursor, error) {
	for v.vals == nil || v.i >= v.vals.Len() {
		if err := v.load(ctx); err != nil {
			return nil, nil, err
		}
	}
	o := v.vals.Offsets(v.i)
	b := v.vals.StringBytes()[o[0]:o[1]]
	path := fmt.Sprintf("%s[%d]", v.path(), v.i)
	v.i++
	return b, wire.NewInnerCursor(b, v.At, path), nil
}

// path is the path of the current block.
func (v *BinaryValues) path() string {
	if v.List != nil {
		return fmt.Sprintf("block(from row %d)", v.List[v.n-1].First)
	}
	return v.walk.Path()
}

// LostBlock is the error of a block that cannot be read, whose rows are known.
type LostBlock struct {
	error
	First, Rows int64
}

func (e *LostBlock) Unwrap() error { return e.error }

// LostRows are the rows [from, to) of the block.
func (e *LostBlock) LostRows() (from, to int64) { return e.First, e.First + e.Rows }

// listed decodes the next block of the list. After an error the block is skipped.
func (v *BinaryValues) listed(ctx context.Context) error {
	if v.vals != nil {
		v.vals.Reset()
		v.i = 0
	}
	if v.n == len(v.List) {
		return io.EOF
	}
	b := &v.List[v.n]
	v.n++
	err := b.Lost
	if err == nil {
		err = v.decode(ctx, b)
	}
	if err != nil {
		return &LostBlock{err, b.First, b.Rows}
	}
	return nil
}

// load decodes the next block. After an error the block is skipped.
func (v *BinaryValues) load(ctx context.Context) error {
	if v.List != nil {
		return v.listed(ctx)
	}
	w := v.walk
	if v.n > 0 && !w.Eof {
		if err := w.Next(ctx); err != nil {
			return err
		}
	}
	v.n++
	if v.vals != nil {
		v.vals.Reset()
		v.i = 0
	}
	if w.Eof {
		end, ok := v.count.end(v.begun+v.n-2, v.F.Footer.NumValues)
		if !ok || v.n == 1 && v.F.Footer.NumValues > 0 {
			return fault.Corruptf(v.F.FootSpan(), "footer.num_values", "expected %d, where the last block ends, "+
				"found %d", end, v.F.Footer.NumValues)
		}
		return io.EOF
	}
	e, err := w.Current()
	if err == nil {
		err = w.Block(e)
	}
	if err != nil {
		return err
	}
	return v.decode(ctx, &DataBlock{Ptr: e.Ptr, First: -1, Rows: -1})
}

func (v *BinaryValues) decode(ctx context.Context, b *DataBlock) (err error) {
	if v.vals == nil {
		if v.vals, err = vec.New(block.Binary.Arrow(0, 0), memory.DefaultAllocator); err != nil {
			return err
		}
	}
	v.vals.Reset()
	v.arena.Reset()
	v.i = 0
	v.At = v.F.Span(b.Ptr)
	if err := v.F.CheckSize(v.At, v.path()); err != nil {
		return err
	}
	stored := v.arena.Bytes(int(b.Ptr.Size))
	if err := format.ReadFull(ctx, v.F.Src, v.At, v.path(), stored); err != nil {
		return err
	}
	t := format.Task{Page: format.Page{Ordinal: v.begun + v.n - 1, Spans: []fault.Span{v.At}, Own: b}, N: -1,
		Bytes: [][]byte{stored}, Scratch: &v.arena, Limits: v.F.Limits}
	if _, err = v.F.Decode(&t, v.vals, &v.count); err != nil {
		v.vals.Reset() // a block's values are returned all or not at all
	}
	return fault.Locate(err, v.At, true, v.path())
}

// Blocks returns the blocks that may have deltas of rows, in order. Only the index is read.
func (d *DeltaFile) Blocks(ctx context.Context, rows vec.Range) (out []DeltaBlock, err error) {
	w := d.f.Values()
	// A row may span blocks, so it may begin in the last block whose key is less than the row's.
	if err := w.seek(ctx, AppendOrderedVarint(nil, uint64(max(0, rows.From))), true); err != nil {
		return nil, err
	}
	for !w.Eof {
		e, err := w.Current()
		if err == nil {
			err = w.Block(e)
		}
		if err != nil {
			return out, err
		}
		b := DeltaBlock{Last: 1<<32 - 1, At: d.f.Span(e.Ptr)}
		c := wire.NewCursor(e.Key, w.Place(), w.Path()+".key")
		if b.First = int64(ParseOrderedVarint(c, "row")); c.Err() != nil {
			return out, fault.Corruptf(w.Place(), w.Path()+".key", "%x is not a row and a timestamp", e.Key)
		}
		if n := len(out); n > 0 {
			if b.First < out[n-1].First {
				return out, fault.Corruptf(w.Place(), w.Path()+".key", "row %d, the entry before has %d", b.First,
					out[n-1].First)
			}
			out[n-1].Last = b.First
		}
		if b.First >= rows.To {
			break
		}
		out = append(out, b)
		if err := w.Next(ctx); err != nil {
			return out, err
		}
	}
	if w.Eof && len(out) == 0 && d.f.Footer.NumValues > 0 && rows.From == 0 {
		return nil, fault.Corruptf(d.f.FootSpan(), "footer.num_values", "expected 0, as the index is empty, found %d",
			d.f.Footer.NumValues)
	}
	return out, nil
}

// String formats the statistics as Kudu's tools do, except that columns are sorted; Kudu lists them in hash table
// order.
func (s *DeltaStats) String() string {
	var counts []string
	for _, id := range slices.Sorted(maps.Keys(s.Updates)) {
		counts = append(counts, fmt.Sprintf("%d:%d", id, s.Updates[id]))
	}
	return fmt.Sprintf("ts range=[%d, %d], delete_count=[%d], reinsert_count=[%d], update_counts_by_col_id=[%s]",
		s.MinTimestamp, s.MaxTimestamp, s.Deletes, s.Reinserts, strings.Join(counts, ","))
}

// AppendOrderedVarint appends x as SQLite4's varint, which orders numbers under bytes.Compare.
func AppendOrderedVarint(dst []byte, x uint64) []byte {
	switch {
	case x <= 240:
		return append(dst, byte(x))
	case x <= 2287:
		x -= 240
		return append(dst, byte(x>>8)+241, byte(x))
	case x <= 67823:
		x -= 2288
		return append(dst, 249, byte(x>>8), byte(x))
	}
	n := 3
	for n < 8 && x>>(8*n) != 0 {
		n++
	}
	dst = append(dst, byte(247+n))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(x>>(8*i)))
	}
	return dst
}

// Facts returns the statistics in the form that `stoa meta` prints.
func (s *DeltaStats) Facts() []format.KeyValue {
	out := []format.KeyValue{
		{Key: "delta.deletes", Value: fmt.Sprint(s.Deletes)},
		{Key: "delta.reinserts", Value: fmt.Sprint(s.Reinserts)},
		{Key: "delta.min_timestamp", Value: fmt.Sprint(s.MinTimestamp)},
		{Key: "delta.max_timestamp", Value: fmt.Sprint(s.MaxTimestamp)},
	}
	for _, id := range slices.Sorted(maps.Keys(s.Updates)) {
		out = append(out, format.KeyValue{Key: fmt.Sprintf("delta.updates.%d", id), Value: fmt.Sprint(s.Updates[id])})
	}
	return out
}

// The kinds of changes, the first byte of a change list.
const (
	ChangeUpdate   = 1
	ChangeDelete   = 2
	ChangeReinsert = 3
)

// OrderedVarintLen returns the size in bytes of an ordered varint, which its first byte determines.
func OrderedVarintLen(first byte) int {
	switch {
	case first <= 240:
		return 1
	case first <= 248:
		return 2
	}
	return int(first) - 246
}

// DeltaBlock is a block of a delta file, as its index describes it.
type DeltaBlock struct {
	First, Last int64 // rows of its deltas, both included; Last is the first row of the next block
	At          fault.Span
}

// DeltaDecoder decodes blocks of delta files. It is not safe for concurrent use.
type DeltaDecoder struct {
	arena   vec.Arena
	vals    *vec.Vector
	changes []DeltaChange
}

// Decode calls f for each delta of the block b, in order; bytes are the file's bytes at b.At. A delta is valid only
// during the call of f; the bytes of its values are valid until the next Decode.
func (x *DeltaDecoder) Decode(d *DeltaFile, b DeltaBlock, bytes []byte, f func(Delta) error) error {
	if x.vals == nil {
		var err error
		if x.vals, err = vec.New(block.Binary.Arrow(0, 0), memory.DefaultAllocator); err != nil {
			return err
		}
	}
	x.vals.Reset()
	x.arena.Reset()
	path := fmt.Sprintf("deltas(from row %d)", b.First)
	page := format.Page{Spans: []fault.Span{b.At}, Own: &DataBlock{First: -1, Rows: -1}}
	t := format.Task{Page: page, N: -1, Bytes: [][]byte{bytes}, Scratch: &x.arena, Limits: d.f.Limits}
	if _, err := d.f.Decode(&t, x.vals, nil); err != nil {
		return fault.Locate(err, b.At, true, path)
	}
	offs, text, last := x.vals.Offsets(0), x.vals.StringBytes(), int64(-1)
	for i := range x.vals.Len() {
		c := wire.NewInnerCursor(text[offs[i]:offs[i+1]], b.At, "")
		delta := ParseDelta(c, x.changes)
		x.changes = delta.Changes
		switch {
		case c.Err() != nil:
			return fault.Locate(c.Err(), b.At, false, fmt.Sprintf("%s[%d]", path, i))
		case i == 0 && delta.Row != b.First, delta.Row < last, delta.Row > b.Last:
			return fault.Corruptf(b.At, fmt.Sprintf("%s[%d].row", path, i),
				"%d is not between row %d before it and row %d after it", delta.Row, max(last, b.First), b.Last)
		}
		last = delta.Row
		if err := f(delta); err != nil {
			return fault.Locate(err, b.At, false, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	return nil
}

// ParseChanges reads a RowChangeList, which follows the row and timestamp of a delta. The memory of changes is reused;
// values alias list. at, the place from which list was decoded, is the place in errors.
func ParseChanges(list []byte, at fault.Span, path string, changes []DeltaChange) (DeltaOp, []DeltaChange, error) {
	c := wire.NewInnerCursor(list, at, path)
	op, changes := parseChangeList(c, changes)
	return op, changes, c.Err()
}

// ParseCells reads the cells that follow the first byte of a RowChangeList. For changes, at and path see ParseChanges.
func ParseCells(cells []byte, at fault.Span, path string, changes []DeltaChange) ([]DeltaChange, error) {
	c := wire.NewInnerCursor(cells, at, path)
	changes = changes[:0]
	for c.Err() == nil && c.Left() > 0 {
		changes = append(changes, parseChange(c))
	}
	return changes, c.Err()
}

// ParseDeltaStats reads the value of the metadata pair deltafilestats of a footer with the span at.
func ParseDeltaStats(b []byte, at fault.Span) (DeltaStats, error) {
	c := wire.NewInnerCursor(b, at, "footer."+block.MetaDeltaStats)
	s := parseDeltaStats(c)
	return s, c.Err()
}
