package change

import (
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
	"stoa/format/text"
)

// badTexts parses the texts of nested and binary columns, which a load into a table does not. The rows go on to the
// load in pieces without those in which a text is no value, and what it finds in them belongs to the rows as they came.
type badTexts struct {
	types map[string]arrow.DataType // of the columns that are parsed, by name in lower case

	batch arrow.RecordBatch // that is being given to the load, as it came
	found []format.Misfit   // in rows of the batch that are not reported yet, by row
	from  int               // row of the batch with which the piece begins that the load has
	read  int64             // number of rows before the batch
	given int64             // number of rows that the load got before the piece
	again bool              // the rows were read before, and reported
}

// asText returns the type with which a column of texts is read whose type in the table is t.
func (x *badRecords) asText(column string, t arrow.DataType) arrow.DataType {
	if arrow.IsNested(t.ID()) || binaryType(t) {
		if x.texts.types == nil {
			x.texts.types = map[string]arrow.DataType{}
		}
		x.texts.types[strings.ToLower(column)] = t
	}
	return arrow.BinaryTypes.String
}

// schema returns the schema of the rows that the load gets.
func (x *badRecords) schema(sc *arrow.Schema) *arrow.Schema {
	fields := slices.Clone(sc.Fields())
	for i, f := range fields {
		if t := x.texts.types[strings.ToLower(f.Name)]; t != nil {
			fields[i].Type = t
		}
	}
	return arrow.NewSchema(fields, nil)
}

// parsed returns the rows that the load gets, with schema sc.
func (x *badRecords) parsed(sc *arrow.Schema,
	rows iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		defer func() { x.texts.again = true }()
		x.texts.read, x.texts.given = 0, 0
		for b, err := range rows {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !x.pieces(sc, b, yield) {
				return
			}
			x.texts.read += b.NumRows()
		}
	}
}

// pieces yields the rows of a batch in which all texts are values or, with the action force, all rows.
func (x *badRecords) pieces(sc *arrow.Schema, b arrow.RecordBatch,
	yield func(arrow.RecordBatch, error) bool) bool {
	values := x.texts.parse(sc, b)
	defer values.Release()
	var out []int // rows that are left out
	if x.action != "force" {
		for _, m := range x.texts.found {
			out = append(out, m.Row)
		}
	}
	out = append(slices.Compact(out), int(b.NumRows()))
	x.texts.from = 0
	for _, to := range out {
		if n := to - x.texts.from; n > 0 {
			part := values.NewSlice(int64(x.texts.from), int64(to))
			goes := yield(part, nil)
			part.Release()
			if !goes {
				return false
			}
			x.texts.given += int64(n)
		}
		if err := x.reportTo(to + 1); err != nil {
			yield(nil, err)
			return false
		}
		x.texts.from = to + 1
	}
	return true
}

// parse returns the rows of a batch with values instead of texts, and notes the texts that are none.
func (x *badTexts) parse(sc *arrow.Schema, b arrow.RecordBatch) arrow.RecordBatch {
	x.batch, x.found = b, nil
	cols := slices.Clone(b.Columns())
	for k, a := range cols {
		name := b.ColumnName(k)
		t, s := x.types[strings.ToLower(name)], (*array.String)(nil)
		if t != nil {
			s, _ = a.(*array.String)
		}
		if s == nil {
			continue
		}
		cols[k] = text.ParseCells(cli.Pool, s, t, func(i int, err error) {
			x.found = append(x.found, format.Misfit{Row: i, Column: name, Reason: err.Error()})
		})
		defer cols[k].Release()
	}
	slices.SortStableFunc(x.found, func(a, b format.Misfit) int { return a.Row - b.Row })
	return array.NewRecordBatch(sc, cols, b.NumRows())
}

// add reports a row that the load finds bad, with the texts of it that are no values, and those that come before it.
func (x *badRecords) add(b stoa.BadRow) error {
	at := x.texts.from + int(b.Number-x.texts.given)
	if err := x.reportTo(at); err != nil {
		return err
	}
	n := 0
	for n < len(x.texts.found) && x.texts.found[n].Row == at {
		n++
	}
	why := append(slices.Clone(x.texts.found[:n]), b.Why...)
	x.texts.found = x.texts.found[n:]
	return x.reportRow(at, why)
}

// reportTo reports the rows before end in which texts are no values.
func (x *badRecords) reportTo(end int) error {
	for len(x.texts.found) > 0 && x.texts.found[0].Row < end {
		n := 1
		for n < len(x.texts.found) && x.texts.found[n].Row == x.texts.found[0].Row {
			n++
		}
		why := x.texts.found[:n]
		x.texts.found = x.texts.found[n:]
		if x.texts.again {
			continue
		}
		if err := x.reportRow(why[0].Row, why); err != nil {
			return err
		}
	}
	return nil
}

func (x *badRecords) reportRow(at int, why []format.Misfit) error {
	row := x.texts.batch.NewSlice(int64(at), int64(at)+1)
	defer row.Release()
	return x.report(x.texts.read+int64(at), row, why)
}
