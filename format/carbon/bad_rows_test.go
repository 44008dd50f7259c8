package carbon_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowMemory "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format/carbon"
)

// textOrders returns rows of texts, of which rows 1, 3 and 4 are bad.
func textOrders() arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{{Name: "ID", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "amount", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "day", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, sc)
	defer b.Release()
	for _, row := range [][3]string{{"1", "2.50", "2020-01-01"}, {"x", "3", "2020-01-02"}, {"", "", ""},
		{"3", "12345678901.00", "2020-02-30"}, {"2147483648", "1", "2020-01-05"}, {"6", "6.00", "2020-01-06"}} {
		for i, s := range row {
			if s == "" {
				b.Field(i).AppendNull()
			} else {
				b.Field(i).(*array.StringBuilder).Append(s)
			}
		}
	}
	return b.NewRecordBatch()
}

// TestBadRows: rows with values that do not fit their columns end a load, are left out, or get nulls instead, as the
// option states. Each is reported once, with its number and the reason, in tables with and without partitions and
// sorting.
func TestBadRows(t *testing.T) {
	rows := textOrders()
	more := func(yield func(arrow.RecordBatch, error) bool) { // two batches: row numbers continue from one to the next
		for _, part := range []arrow.RecordBatch{rows.NewSlice(0, 2), rows.NewSlice(2, 6)} {
			if !yield(part, nil) {
				return
			}
		}
	}
	for name, spec := range map[string]carbon.TableSpec{"plain": {}, "sorted": {SortColumns: []string{"id"}},
		"parted":     {Partition: []string{"day"}},
		"dictionary": {Properties: map[string]string{"dictionary_include": "id"}}} {
		for action, want := range map[stoa.BadAction][]string{stoa.BadIgnore: {"(null)", "1", "6"},
			stoa.BadForce: {"(null)", "(null)", "(null)", "1", "3", "6"}, stoa.BadFail: nil} {
			dir := newOrders(t, spec)
			c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var reported []int64
			var columns []string
			o := stoa.AppendOptions{Bad: action, OnBad: func(b stoa.BadRow) error {
				reported = append(reported, b.Number)
				for _, m := range b.Why {
					columns = append(columns, m.Column)
				}
				if b.Row.NumRows() != 1 || b.Row.NumCols() != 3 {
					t.Errorf("%s %s: got %v, want the row", name, action, b.Row)
				}
				return nil
			}}
			if name == "dictionary" {
				o.Dictionary = "two-pass"
			}
			r, err := c.Append(t.Context(), rows.Schema(), more, o)
			if action == stoa.BadFail {
				if err == nil || len(valuesOf(t, dir, "id")) > 0 {
					t.Errorf("%s: got %+v, want an error and no rows", name, r)
				}
				continue
			}
			if err != nil || r.Bad != 3 || !r.Checked {
				t.Errorf("%s %s: got %+v, %v", name, action, r, err)
				continue
			}
			if got := valuesOf(t, dir, "id"); !slices.Equal(got, want) {
				t.Errorf("%s %s: got %v, want %v", name, action, got, want)
			}
			if !slices.Equal(reported, []int64{1, 3, 4}) ||
				!slices.Equal(columns, []string{"id", "day", "amount", "id"}) {
				t.Errorf("%s %s: reported %v, %v", name, action, reported, columns)
			}
			healthy(t, dir)
		}
	}
}

// TestBadRowsWrongUse: other actions are refused, and so are bad rows in a merge.
func TestBadRowsWrongUse(t *testing.T) {
	dir := newOrders(t, carbon.TableSpec{}, [2]int{0, 3})
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := orders(0, 3)
	if _, err := c.Append(t.Context(), b.Schema(), once(b), stoa.AppendOptions{Bad: "redirect"}); !errors.Is(err,
		fault.Invalid) {
		t.Errorf("redirect: got %v", err)
	}
	o := stoa.MergeOptions{Key: []string{"id"}, AppendOptions: stoa.AppendOptions{Bad: stoa.BadIgnore}}
	if _, err := c.Merge(t.Context(), b.Schema(), once(b), o); !errors.Is(err, fault.Invalid) {
		t.Errorf("merge: got %v", err)
	}
	reported := errors.New("no")
	rows := textOrders()
	_, err = c.Append(t.Context(), rows.Schema(), once(rows), stoa.AppendOptions{Bad: stoa.BadIgnore,
		OnBad: func(stoa.BadRow) error { return reported }})
	if !errors.Is(err, reported) {
		t.Errorf("got %v, want the error of OnBad", err)
	}
	if got := valuesOf(t, dir, "id"); len(got) != 3 {
		t.Errorf("got %v, want the rows of before", got)
	}
}
