package cfile

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/pb"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// DeltaOp is what a delta does to its row.
type DeltaOp uint8

const (
	DeltaUpdate   DeltaOp = changeUpdate
	DeltaDelete   DeltaOp = changeDelete
	DeltaReinsert DeltaOp = changeReinsert
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
	Value  []byte // as a block stores it: fixed-width types little-endian; nil = NULL
}

// parseDelta reads a value of a delta file, which c holds exactly:
//
//	row        ordered varint (SQLite 4's)
//	timestamp  ordered varint
//	op         1 update, 2 delete, 3 reinsert
//	changes    of 1 and 3, each: column id varint, size varint (0 NULL, else the length and 1), bytes
//
// Values are part of c's bytes. changes has its memory used again.
func parseDelta(c *wire.Cursor, changes []DeltaChange) (d Delta) {
	d.Row = int64(parseOrderedVarint(c, "row"))
	d.Timestamp = parseOrderedVarint(c, "timestamp")
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

// parseChangeList reads what stands behind row and timestamp.
func parseChangeList(c *wire.Cursor, changes []DeltaChange) (op DeltaOp, _ []DeltaChange) {
	op = DeltaOp(c.U8("op"))
	switch {
	case c.Err() != nil:
	case op < DeltaUpdate || op > DeltaReinsert:
		c.Fail(c.Pos()-1, 1, "op", "%d is neither update (1) nor delete (2) nor reinsert (3)", op)
	case op == DeltaDelete && c.Left() > 0:
		c.Fail(c.Pos(), c.Left(), "changes", "%d bytes behind a delete", c.Left())
	}
	changes = changes[:0]
	for c.Err() == nil && c.Left() > 0 {
		changes = append(changes, parseChange(c))
	}
	return op, changes
}

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

// parseOrderedVarint reads a number whose bytes compare as numbers do. One that is longer than it must be is refused.
func parseOrderedVarint(c *wire.Cursor, name string) uint64 {
	at := c.Pos()
	rest := c.Rest()
	if len(rest) == 0 || orderedVarintLen(rest[0]) > len(rest) {
		c.Fail(at, len(rest), name, "an ordered varint does not fit in %d bytes", len(rest))
		return 0
	}
	n := orderedVarintLen(rest[0])
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

// DeltaStats is the metadata deltafilestats.
type DeltaStats struct {
	Deletes, Reinserts         int64
	MinTimestamp, MaxTimestamp uint64
	Updates                    map[uint32]int64 // by column id
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

// deltaStats are the statistics of f's metadata.
func (f *file) deltaStats() (DeltaStats, bool, error) {
	b, ok := f.footer.Get(metaDeltaStats)
	if !ok {
		return DeltaStats{}, false, nil
	}
	c := wire.NewInnerCursor(b, f.footSpan(), "footer."+metaDeltaStats)
	s := parseDeltaStats(c)
	return s, true, c.Err()
}

// DeltaFile is an open delta file.
type DeltaFile struct {
	f     *file
	stats DeltaStats
	told  bool // stats is there
}

// OpenDelta opens a delta file. The name stands in errors.
func OpenDelta(ctx context.Context, src store.Source, name string, o format.OpenOptions) (*DeltaFile, error) {
	f, err := openFile(ctx, src, fault.Span{Object: name, Len: src.Size()}, o)
	if err != nil {
		return nil, err
	}
	return newDelta(f)
}

func newDelta(f *file) (*DeltaFile, error) {
	if why := f.unfit(KindDelta); why != "" {
		return nil, fault.New(fault.Invalid, f.footSpan(), "footer", "%s", why)
	}
	s, told, err := f.deltaStats()
	return &DeltaFile{f, s, told}, err
}

// Len is the number of deltas.
func (d *DeltaFile) Len() int64 { return d.f.footer.NumValues }

// Stats are the file's statistics, if it has any.
func (d *DeltaFile) Stats() (DeltaStats, bool) { return d.stats, d.told }

// Deltas reads on from a place in a delta file. It is used by one goroutine.
type Deltas struct {
	values *binaryValues
	least  int64 // rows before it are passed over
	cur    []DeltaChange
}

// All reads from the beginning.
func (d *DeltaFile) All(ctx context.Context) (*Deltas, error) { return d.SeekRow(ctx, 0) }

// SeekRow reads from the first delta whose row is not before row.
func (d *DeltaFile) SeekRow(ctx context.Context, row int64) (*Deltas, error) {
	if row < 0 || row > 1<<32-1 {
		return nil, fault.Invalidf("row %d", row)
	}
	v := &binaryValues{f: d.f}
	// The first key of a block is whole here, and rows do not fall, so the row may also begin in the block before.
	if err := v.seek(ctx, appendOrderedVarint(nil, uint64(row))); err != nil {
		return nil, err
	}
	return &Deltas{values: v, least: row}, nil
}

// Next is the next delta, good until the following call; io.EOF behind the last.
func (d *Deltas) Next(ctx context.Context) (Delta, error) {
	for {
		_, c, err := d.values.next(ctx)
		if err != nil {
			return Delta{}, err
		}
		x := parseDelta(c, d.cur)
		if c.Err() != nil {
			return Delta{}, c.Err()
		}
		d.cur = x.Changes
		if x.Row >= d.least {
			return x, nil
		}
	}
}

// binaryValues reads the values of a file without positional index, one after the other, by its value index.
type binaryValues struct {
	f     *file
	walk  *walker
	count counting
	n     int // blocks entered
	begun int // number of the first one: 0, or -1 if it is not the file's first

	arena vec.Arena
	vals  *vec.Vector
	at    fault.Span
	i     int
}

// seek stands before the block in which a value not below key may come first.
func (v *binaryValues) seek(ctx context.Context, key []byte) error {
	v.walk = v.f.values()
	if err := v.walk.seek(ctx, key, true); err != nil {
		return err
	}
	for i := range v.walk.stack {
		if v.walk.stack[i].i > 0 {
			v.begun = 1
		}
	}
	return nil
}

// next is the next value, and a cursor over it.
func (v *binaryValues) next(ctx context.Context) ([]byte, *wire.Cursor, error) {
	for v.vals == nil || v.i >= v.vals.Len() {
		if err := v.load(ctx); err != nil {
			return nil, nil, err
		}
	}
	o := v.vals.Offsets(v.i)
	b := v.vals.StringBytes()[o[0]:o[1]]
	path := fmt.Sprintf("%s[%d]", v.walk.path(), v.i)
	v.i++
	return b, wire.NewInnerCursor(b, v.at, path), nil
}

// load decodes the next block. After an error the block is passed over.
func (v *binaryValues) load(ctx context.Context) error {
	w := v.walk
	if v.n > 0 && !w.eof {
		if err := w.next(ctx); err != nil {
			return err
		}
	}
	v.n++
	if v.vals != nil {
		v.vals.Reset()
		v.i = 0
	}
	if w.eof {
		end, ok := v.count.end(v.begun+v.n-2, v.f.footer.NumValues)
		if !ok || v.n == 1 && v.f.footer.NumValues > 0 {
			return fault.Corruptf(v.f.footSpan(), "footer.num_values", "%d, but the last block ends at row %d", v.f.footer.NumValues, end)
		}
		return io.EOF
	}
	e, err := w.current()
	if err == nil {
		err = w.block(e)
	}
	if err != nil {
		return err
	}
	if v.vals == nil {
		if v.vals, err = vec.New(Binary.arrow(0, 0), memory.DefaultAllocator); err != nil {
			return err
		}
	}
	return v.decode(ctx, e.ptr)
}

func (v *binaryValues) decode(ctx context.Context, p blockPtr) error {
	v.vals.Reset()
	v.arena.Reset()
	v.i = 0
	v.at = v.f.span(p)
	if err := v.f.fit(v.at, v.walk.path()); err != nil {
		return err
	}
	stored := v.arena.Bytes(int(p.size))
	if err := format.ReadFull(ctx, v.f.src, v.at, v.walk.path(), stored); err != nil {
		return err
	}
	b := &dataBlock{ptr: p, first: -1, rows: -1}
	t := format.Task{Page: format.Page{Ordinal: v.begun + v.n - 1, Spans: []fault.Span{v.at}, Own: b}, N: -1, Bytes: [][]byte{stored}, Scratch: &v.arena, Limits: v.f.limits}
	_, err := v.f.decode(&t, v.vals, &v.count)
	if err != nil {
		v.vals.Reset() // half a block is none: what stands behind the error has no values
	}
	return fault.Locate(err, v.at, true, v.walk.path())
}
