package cfile

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/cfile/internal/write"
	"stoa/internal/nest"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// keyOrder checks the encoded keys of a sorted file: they must ascend, separators must lie between the keys of adjacent
// blocks, and the metadata must have the min and the max key.
type keyOrder struct {
	min, last []byte
	any       bool
	descended bool // a descending value has been reported, which is done once per file
}

// sortedKind reports whether the values of the file must ascend.
func (v *verifier) sortedKind() bool {
	return v.f.Sorted() && (v.kind == block.KindColumn || v.kind == block.KindIndex)
}

// values checks a page of values, the first of which is row first.
func (k *keyOrder) values(v *verifier, at fault.Span, path string, first int64, s *seenBlock) {
	if !v.sortedKind() {
		return
	}
	l := columnfile.Lookup{F: v.f}
	for i := range v.vals.Len() {
		key := l.Encode(v.vals, i)
		if k.any && bytes.Compare(key, k.last) < 0 && !k.descended {
			k.descended = true
			v.Report("cfile.values.order", at, path, "the value of row %d is less than the one before", first+int64(i))
		}
		if !k.any {
			k.min, k.any = bytes.Clone(key), true
		}
		if s.first == nil {
			s.first = append(make([]byte, 0, len(key)), key...)
		}
		k.last = append(k.last[:0], key...)
	}
	s.last = bytes.Clone(k.last)
}

// block checks the separator of a block in a file without a positional index.
func (k *keyOrder) block(v *verifier, w *columnfile.Walker, e block.IndexEntry, s *seenBlock) {
	if w.Name != "validx" {
		return
	}
	switch v.kind {
	case block.KindBloom: // filters contain no keys to compare
	case block.KindDelta:
		if s.ok && s.first != nil && !bytes.Equal(s.first, e.Key) {
			v.Report("cfile.index.key", w.Place(), w.Path()+".key", "expected %x, the key of the block's first "+
				"change, found %x", s.first, e.Key)
		}
	default:
		var before *seenBlock
		if n := len(v.blocks); n > 0 {
			before = &v.blocks[n-1]
		}
		checkSeparator(v, w, e, before, s)
	}
}

// separator checks the separator of block i in a file with both indexes.
func (k *keyOrder) separator(v *verifier, w *columnfile.Walker, e block.IndexEntry, i int) {
	var before *seenBlock
	if i > 0 {
		before = &v.blocks[i-1]
	}
	checkSeparator(v, w, e, before, &v.blocks[i])
}

// checkSeparator checks that a separator is at most the first value of its block and greater than the last value of the
// previous block. It may equal the latter only if both blocks have that value.
func checkSeparator(v *verifier, w *columnfile.Walker, e block.IndexEntry, before, s *seenBlock) {
	if !v.sortedKind() || !s.ok || s.first == nil {
		return
	}
	if bytes.Compare(e.Key, s.first) > 0 {
		v.Report("cfile.index.key", w.Place(), w.Path()+".key", "%x is above the block's first value %x", e.Key,
			s.first)
	}
	if before == nil || !before.ok || before.last == nil {
		return
	}
	if d := bytes.Compare(e.Key, before.last); d < 0 || d == 0 && !bytes.Equal(s.first, before.last) {
		v.Report("cfile.index.key", w.Place(), w.Path()+".key",
			"%x is not above the last value of the block before, %x", e.Key, before.last)
	}
}

// checkMetadata compares the min and max key in the metadata with the values.
func (k *keyOrder) checkMetadata(v *verifier) {
	if !v.sortedKind() || v.uncounted || !k.any {
		return
	}
	for _, b := range v.blocks {
		if !b.ok {
			return
		}
	}
	for _, x := range []struct {
		name string
		want []byte
	}{{block.MinKeyKey, k.min}, {block.MaxKeyKey, k.last}} {
		if got, ok := v.f.Footer.Get(x.name); ok && !bytes.Equal(got, x.want) {
			v.Report("cfile.keys.range", v.f.FootSpan(), "footer.metadata."+x.name, "expected %x, computed %x from "+
				"the values", got, x.want)
		}
	}
}

// deltaOrder checks the order of the changes in a delta file, and counts them for its statistics.
type deltaOrder struct {
	any      bool
	row      int64
	ts       uint64
	dir      int // 1: timestamps of a row ascend (REDO), -1: they descend (UNDO), 0: not known yet
	stats    columnfile.DeltaStats
	damaged  bool
	disorder bool
}

// values checks a page of changes, the first of which is number first.
func (d *deltaOrder) values(v *verifier, at fault.Span, path string, first int64, s *seenBlock) {
	if d.stats.Updates == nil {
		d.stats.Updates = map[uint32]int64{}
		d.stats.MinTimestamp = 1<<64 - 1
	}
	offs, data := v.vals.Offsets(0), v.vals.StringBytes()
	var changes []columnfile.DeltaChange
	for i := range v.vals.Len() {
		b := data[offs[i]:offs[i+1]]
		c := wire.NewInnerCursor(b, at, path)
		x := columnfile.ParseDelta(c, changes)
		if c.Err() != nil {
			d.damaged = true
			v.Blame("delta", c.Err(), first+int64(i), first+int64(i)+1)
			continue
		}
		changes = x.Changes
		if s.first == nil {
			s.first = bytes.Clone(write.DeltaKeyOf(b))
		}
		d.next(v, at, path, first+int64(i), &x)
	}
}

func (d *deltaOrder) next(v *verifier, at fault.Span, path string, n int64, x *columnfile.Delta) {
	dir := d.dir
	if d.any && x.Row == d.row && x.Timestamp != d.ts {
		if dir = 1; x.Timestamp < d.ts {
			dir = -1
		}
	}
	if d.any && !d.disorder && (x.Row < d.row || d.dir != 0 && dir != d.dir) {
		d.disorder = true
		v.Report("cfile.delta.order", at, path, "change %d, of row %d at %d, follows row %d at %d", n, x.Row,
			x.Timestamp, d.row, d.ts)
	}
	d.any, d.row, d.ts, d.dir = true, x.Row, x.Timestamp, dir
	s := &d.stats
	switch x.Op {
	case columnfile.DeltaDelete:
		s.Deletes++
	case columnfile.DeltaReinsert:
		s.Reinserts++
	}
	for _, c := range x.Changes {
		s.Updates[c.Column]++
	}
	s.MinTimestamp, s.MaxTimestamp = min(s.MinTimestamp, x.Timestamp), max(s.MaxTimestamp, x.Timestamp)
}

// checkMetadata compares the statistics with the changes.
func (d *deltaOrder) checkMetadata(v *verifier) {
	stats, ok, err := v.f.DeltaStats()
	path := "footer.metadata." + block.MetaDeltaStats
	if err != nil {
		v.Report("cfile.delta.stats", v.f.FootSpan(), path, "they cannot be read: %v", err)
		return
	}
	if !ok || d.damaged || v.uncounted || !d.any {
		return
	}
	for _, b := range v.blocks {
		if !b.ok {
			return
		}
	}
	s := d.stats
	if stats.MinTimestamp != s.MinTimestamp || stats.MaxTimestamp != s.MaxTimestamp {
		v.Report("cfile.delta.stats", v.f.FootSpan(), path, "expected timestamps %d to %d by the changes, found %d "+
			"to %d", s.MinTimestamp, s.MaxTimestamp, stats.MinTimestamp, stats.MaxTimestamp)
	}
	if stats.Deletes != s.Deletes || stats.Reinserts != s.Reinserts {
		v.Report("cfile.delta.stats", v.f.FootSpan(), path, "expected %d deletes and %d reinserts, found %d and %d",
			s.Deletes, s.Reinserts, stats.Deletes, stats.Reinserts)
	}
	for id, n := range s.Updates {
		if stats.Updates[id] != n {
			v.Report("cfile.delta.stats", v.f.FootSpan(), path, "expected %d updates of column %d, found %d", n, id,
				stats.Updates[id])
			break
		}
	}
}

// unusualValues counts values that are kept unchanged but that other readers may refuse. They are reported once per
// file.
type unusualValues struct {
	text, wide     int64 // counts of non-UTF-8 strings and of Int128 values with too many digits
	at             fault.Span
	path           string
	textAt, wideAt int64
}

// page checks a page of values, the first of which is row first (-1: the dictionary).
func (o *unusualValues) page(v *verifier, x *vec.Vector, at fault.Span, path string, first int64) {
	t := v.f.Footer.Type
	if x.Items != nil {
		x = x.Items
	}
	switch {
	case t == block.String || t == block.Varchar:
		offs, b := x.Offsets(0), x.StringBytes()
		for i := range x.Len() {
			if !utf8.Valid(b[offs[i]:offs[i+1]]) {
				o.note(&o.text, &o.textAt, at, path, first+int64(i))
			}
		}
	case t == block.Int128:
		for i := range x.Len() {
			if b := x.Data(i)[:16]; x.Valid(i) && block.TooWide(b) {
				o.note(&o.wide, &o.wideAt, at, path, first+int64(i))
			}
		}
	}
}

func (o *unusualValues) note(n, row *int64, at fault.Span, path string, at1 int64) {
	if *n++; *n == 1 {
		*row = at1
		o.at, o.path = at, path
	}
}

func (o *unusualValues) checkMetadata(v *verifier) {
	if o.text > 0 {
		v.Report("cfile.utf8", o.at, o.path, "%d values are not UTF-8, the first at %d", o.text, o.textAt)
	}
	if o.wide > 0 {
		v.Report("cfile.int128.range", o.at, o.path, "%d values have more than 38 digits, the first at %d", o.wide,
			o.wideAt)
	}
}

// structs compares the columns of each struct with each other. Columns that cannot be read have already been reported.
func (v *verifier) structs(tg format.Target, o format.OpenOptions) {
	opts, err := columnfile.ParseOptions(o.Opts)
	if err != nil {
		return
	}
	r, err := openDir(v.ctx, tg, o, opts)
	if err != nil {
		return
	}
	defer r.Close()
	t := r.(*table)
	tops := nest.Tops(t.Columns(), t.stored.NumFields())
	for i, f := range t.stored.Fields() {
		if rows := nest.ByRows(f, i, t.Columns(), tops[i]); rows != nil && !v.Stopped() {
			v.contradictions(t, rows)
		}
	}
}

// rowsAtOnce is the number of rows of a struct's columns that are compared at a time.
const rowsAtOnce = 1 << 16

// contradictions compares the columns of one struct row by row.
func (v *verifier) contradictions(t *table, rows *nest.RowField) {
	columns := rows.Columns()
	its, held := make([]*Iterator, len(t.files)), make([]arrow.Array, len(t.files))
	drop := func(c int) {
		if held[c] != nil {
			held[c].Release()
			held[c] = nil
		}
	}
	defer func() {
		for _, c := range columns {
			if drop(c); its[c] != nil {
				its[c].Close()
			}
		}
	}()
	for at := int64(0); at < t.rows && !v.Stopped(); {
		n := rowsAtOnce
		for _, c := range columns {
			if held[c] == nil {
				var err error
				if its[c] == nil {
					f := t.files[c]
					its[c], err = (&Reader{f: f.File, field: arrow.Field{Type: f.place.typ}}).SeekToOrdinal(v.ctx, 0)
				}
				if err == nil {
					held[c], err = its[c].Next(v.ctx, rowsAtOnce)
				}
				if err != nil {
					return
				}
			}
			n = min(n, held[c].Len())
		}
		if x := rows.Contradicts(vec.All(n), func(c int) arrow.Array { return held[c] }); x != nil {
			first, end := at+int64(x.Rows[0]), at+int64(x.Rows[len(x.Rows)-1])+1
			v.Emit(region.Finding{Code: "cfile.struct", Severity: region.Error, At: fault.Span{Object: t.name},
				Message: fmt.Sprintf("row %d: %s", first, x.Why), Part: t.name, Column: rows.Name,
				Rows: [2]int64{first, end}, Lost: int64(len(x.Rows))})
		}
		for _, c := range columns {
			arr := held[c]
			if held[c] = nil; n < arr.Len() {
				held[c] = array.NewSlice(arr, int64(n), int64(arr.Len()))
			}
			arr.Release()
		}
		at += int64(n)
	}
}

// gaps says which of the two indexes could not be read whole.
type gaps struct{ positions, values bool }

// compareIndexes compares an entry of the value index with entry n of the positional one, and sets n to the next. After
// a gap in either index, which is one finding, the blocks that both have are compared.
func (v *verifier) compareIndexes(w *columnfile.Walker, e block.IndexEntry, n *int) {
	i := *n
	if i < len(v.blocks) && v.blocks[i].ptr != e.Ptr {
		later, known := v.placeOf(e.Ptr)
		switch {
		case known && later > i:
			if !v.gaps.values {
				v.Report("cfile.index.disagree", w.Place(), w.Path(), "the positional index has %s before "+
					"this one that the value index lacks", fault.Count(later-i, "block"))
			}
			i = later
		case !known && v.gaps.positions: // it may be in the part that could not be read
			return
		}
	}
	*n = i + 1
	if i >= len(v.blocks) {
		if i == len(v.blocks) && !v.uncounted {
			v.Report("cfile.index.disagree", w.Place(), w.Path(),
				"the value index has more blocks than the positional one")
		}
		return
	}
	if s := v.blocks[i]; s.ptr != e.Ptr {
		v.Report("cfile.index.disagree", w.Place(), w.Path(),
			"the block is [%d+%d] here, and [%d+%d] in the positional index", e.Ptr.Offset, e.Ptr.Size,
			s.ptr.Offset, s.ptr.Size)
		return
	}
	v.keys.separator(v, w, e, i)
}

// placeOf returns the place of a block in the positional index.
func (v *verifier) placeOf(p block.BlockPtr) (i int, known bool) {
	if v.places == nil {
		v.places = make(map[block.BlockPtr]int, len(v.blocks))
		for i, s := range v.blocks {
			v.places[s.ptr] = i
		}
	}
	i, known = v.places[p]
	return i, known
}
