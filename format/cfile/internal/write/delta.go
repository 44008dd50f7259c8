package write

import (
	"encoding/binary"
	"io"
	"math"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/internal/pb"
)

// ChangeList builds one change of one row: begin with Update, Delete or Reinsert, then set columns.
//
//	u8 1 update / 2 delete / 3 reinsert
//	update, reinsert: varint column id; varint 0 (NULL) or length+1; bytes …
//
// Source: Kudu's row_changelist.h.
type ChangeList struct {
	buf  []byte
	cols []uint32
}

// Update begins a change of the columns that are set.
func (l *ChangeList) Update() *ChangeList { return l.begin(columnfile.ChangeUpdate) }

// Delete is the deletion of the row; no columns are set.
func (l *ChangeList) Delete() *ChangeList { return l.begin(columnfile.ChangeDelete) }

// Reinsert begins a reinsertion of a deleted row with the columns that are set (all but the key).
func (l *ChangeList) Reinsert() *ChangeList { return l.begin(columnfile.ChangeReinsert) }

func (l *ChangeList) begin(kind byte) *ChangeList {
	l.buf, l.cols = append(l.buf[:0], kind), l.cols[:0]
	return l
}

// Set sets the value of a column: strings as they are, other types as little-endian bytes.
func (l *ChangeList) Set(column uint32, value []byte) *ChangeList {
	l.cols = append(l.cols, column)
	l.buf = binary.AppendUvarint(l.buf, uint64(column))
	l.buf = binary.AppendUvarint(l.buf, uint64(len(value))+1)
	l.buf = append(l.buf, value...)
	return l
}

// SetNull makes a column NULL.
func (l *ChangeList) SetNull(column uint32) *ChangeList {
	l.cols = append(l.cols, column)
	l.buf = append(binary.AppendUvarint(l.buf, uint64(column)), 0)
	return l
}

// Bytes is the encoded change list.
func (l *ChangeList) Bytes() []byte { return l.buf }

// check returns an error for a change list that no reader accepts.
func (l *ChangeList) check() error {
	switch {
	case len(l.buf) == 0:
		return fault.Invalidf("a change list without a kind")
	case l.buf[0] == columnfile.ChangeDelete && len(l.cols) > 0:
		return fault.Invalidf("a deletion sets columns")
	case l.buf[0] == columnfile.ChangeUpdate && len(l.cols) == 0:
		return fault.Invalidf("an update sets no columns")
	}
	return nil
}

// DeltaWriter writes a delta file. Its binary values are the key of a change (row and timestamp, as varints that
// compare like numbers) followed by the change list. The value index has whole keys, and the metadata has statistics.
//
// Source: Kudu's tablet/deltafile.cc and delta_stats.cc.
type DeltaWriter struct {
	f     *stringFile
	undo  bool
	n     int64
	row   uint32
	ts    uint64
	key   []byte
	stats deltaStats
}

type deltaStats struct {
	deletes, reinserts int64
	minTS, maxTS       uint64
	updates            map[uint32]int64
	cols               []uint32 // in the order of first appearance
}

// NewDeltaWriter begins a delta file; undo selects the order of timestamps. Options that o leaves open are Kudu's:
// plain encoding, LZ4, blocks of 32 KiB.
func NewDeltaWriter(w io.Writer, undo bool, o WriterOptions) (*DeltaWriter, error) {
	if o.Encoding == block.AutoEncoding {
		o.Encoding = block.Plain
	}
	if o.Compression == block.DefaultCompression {
		o.Compression = block.LZ4
	}
	setZero(&o.BlockSize, 32<<10)
	o.NoPositionalIndex, o.ValueIndex = true, true
	o.indexKey, o.unsorted, o.noKeys = DeltaKeyOf, true, true
	f, err := newStringFile(w, "delta file", o)
	return &DeltaWriter{f: f, undo: undo, stats: deltaStats{minTS: math.MaxUint64, updates: map[uint32]int64{}}}, err
}

// Add appends a change of a row at a hybrid timestamp. Rows must ascend; within a row timestamps must ascend (REDO) or
// descend (UNDO). The error is Invalid.
func (d *DeltaWriter) Add(row uint32, ts uint64, l *ChangeList) error {
	if err := l.check(); err != nil {
		return err
	}
	if d.n > 0 {
		fell := ts < d.ts
		if d.undo {
			fell = ts > d.ts
		}
		if row < d.row || row == d.row && fell {
			return fault.Invalidf("change %d: row %d at %d is out of order after row %d at %d", d.n, row, ts, d.row,
				d.ts)
		}
	}
	d.n++
	d.row, d.ts = row, ts
	d.stats.note(ts, l)
	d.key = columnfile.AppendOrderedVarint(columnfile.AppendOrderedVarint(d.key[:0], uint64(row)), ts)
	return d.f.add(d.key, l.buf)
}

// Close ends the file. Kudu has no delta files without a change, so closing an empty one is an error.
func (d *DeltaWriter) Close() (Summary, error) {
	if d.n == 0 {
		return Summary{}, fault.Invalidf("a delta file without changes")
	}
	if err := d.f.flush(); err != nil {
		return d.f.c.sum, err
	}
	c := d.f.c
	c.O.Meta = append([]Pair{{block.MetaDeltaStats, d.stats.message()}}, c.O.Meta...)
	return c.Close()
}

func (s *deltaStats) note(ts uint64, l *ChangeList) {
	switch l.buf[0] {
	case columnfile.ChangeDelete:
		s.deletes++
	case columnfile.ChangeReinsert:
		s.reinserts++
	}
	for _, c := range l.cols {
		if s.updates[c] == 0 {
			s.cols = append(s.cols, c)
		}
		s.updates[c]++
	}
	s.minTS, s.maxTS = min(s.minTS, ts), max(s.maxTS, ts)
}

// message is the DeltaStatsPB. The columns are in the order of Kudu's hash map, which for few columns is the reverse
// order of first appearance.
func (s *deltaStats) message() []byte {
	b := pb.AppendUint(nil, 1, uint64(s.deletes))
	b = pb.AppendFixed64(b, 3, s.minTS)
	b = pb.AppendFixed64(b, 4, s.maxTS)
	for i := len(s.cols) - 1; i >= 0; i-- {
		c := pb.AppendUint(nil, 1, uint64(s.cols[i]))
		b = pb.AppendMessage(b, 5, pb.AppendUint(c, 2, uint64(s.updates[s.cols[i]])))
	}
	return pb.AppendUint(b, 6, uint64(s.reinserts))
}

// DeltaKeyOf returns the key at the front of a delta file's value.
func DeltaKeyOf(v []byte) []byte {
	n := columnfile.OrderedVarintLen(v[0])
	return v[:n+columnfile.OrderedVarintLen(v[n])]
}
