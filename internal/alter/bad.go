package alter

import (
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
)

// BadAction determines what a load does with rows that the table cannot hold.
type BadAction string

// The actions are those of CarbonData's BAD_RECORDS_ACTION; for its redirect, use BadIgnore and receive the rows in
// OnBad.
const (
	BadFail   BadAction = ""       // the load fails at the first bad row
	BadForce  BadAction = "force"  // each value that does not fit its column becomes null
	BadIgnore BadAction = "ignore" // the row is left out
)

// BadRow is a row that the table cannot hold.
type BadRow struct {
	Number int64             // among all rows, from 0
	Row    arrow.RecordBatch // a batch of the original row; valid during the call
	Why    []format.Misfit
}

// Bad changes or leaves out the rows that the table cannot hold.
type Bad struct {
	Action BadAction
	OnBad  func(BadRow) error // may be nil
	Find   func(b arrow.RecordBatch) []format.Misfit

	rows     int64 // number of bad rows
	seen     int64
	reported bool // the rows are iterated again, so bad rows are not reported again
}

// Count returns the number of bad rows; 0 if x is nil.
func (x *Bad) Count() int64 {
	if x == nil {
		return 0
	}
	return x.rows
}

// Check returns an error of class Invalid if a is not one of the actions.
func (a BadAction) Check() error {
	switch a {
	case BadFail, BadForce, BadIgnore:
		return nil
	}
	return fault.Invalidf("bad records: expected the action force or ignore, found %q", string(a))
}

// Of returns the rows without the bad ones; if x is nil, all of them.
func (x *Bad) Of(rows iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	if x == nil {
		return rows
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		defer func() { x.reported = true }()
		x.seen = 0
		for b, err := range rows {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !x.batch(b, yield) {
				return
			}
			x.seen += b.NumRows()
		}
	}
}

// batch yields the good rows of a batch, or all of them with nulls.
func (x *Bad) batch(b arrow.RecordBatch, yield func(arrow.RecordBatch, error) bool) bool {
	found := x.Find(b)
	if len(found) == 0 {
		return yield(b, nil)
	}
	from := 0
	good := func(to int) bool {
		if from >= to {
			return true
		}
		part := b.NewSlice(int64(from), int64(to))
		defer part.Release()
		return yield(part, nil)
	}
	for i := 0; i < len(found); {
		end := i + 1
		for end < len(found) && found[end].Row == found[i].Row {
			end++
		}
		if err := x.report(b, found[i:end]); err != nil {
			yield(nil, err)
			return false
		}
		if x.Action != BadForce {
			if !good(found[i].Row) {
				return false
			}
			from = found[i].Row + 1
		}
		i = end
	}
	if x.Action != BadForce {
		return good(int(b.NumRows()))
	}
	forced := nulled(b, found)
	defer forced.Release()
	return yield(forced, nil)
}

// report counts a bad row and passes it to OnBad.
func (x *Bad) report(b arrow.RecordBatch, why []format.Misfit) error {
	if x.reported {
		return nil
	}
	at := int64(why[0].Row)
	if x.rows++; x.OnBad == nil {
		return nil
	}
	row := b.NewSlice(at, at+1)
	defer row.Release()
	return x.OnBad(BadRow{Number: x.seen + at, Row: row, Why: why})
}

// nulled returns a batch in which the values that were found are null.
func nulled(b arrow.RecordBatch, found []format.Misfit) arrow.RecordBatch {
	cols := make([]arrow.Array, b.NumCols())
	for k, a := range b.Columns() {
		gone := map[int]bool{}
		for _, m := range found {
			if strings.EqualFold(m.Column, b.ColumnName(k)) {
				gone[m.Row] = true
			}
		}
		if len(gone) == 0 {
			a.Retain()
			cols[k] = a
			continue
		}
		cols[k] = without(a, gone)
	}
	out := array.NewRecordBatch(b.Schema(), cols, b.NumRows())
	for _, a := range cols {
		a.Release()
	}
	return out
}

// without returns an array in which the values in gone are null as well. Their bytes remain in the buffers, hidden by
// the validity bitmap.
func without(a arrow.Array, gone map[int]bool) arrow.Array {
	d := a.Data()
	bits := make([]byte, (d.Offset()+a.Len()+7)/8)
	for i := range a.Len() {
		if at := d.Offset() + i; a.IsValid(i) && !gone[i] {
			bits[at>>3] |= 1 << (at & 7)
		}
	}
	buffers := append([]*memory.Buffer{memory.NewBufferBytes(bits)}, d.Buffers()[1:]...)
	made := array.NewData(a.DataType(), a.Len(), buffers, d.Children(), array.UnknownNullCount, d.Offset())
	if x, ok := a.(*array.Dictionary); ok {
		made.SetDictionary(x.Dictionary().Data())
	}
	defer made.Release()
	return array.MakeFromData(made)
}
