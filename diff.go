package stoa

import (
	"context"
	"iter"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/diff"
)

// DiffOptions say what Diff compares. The zero value compares all rows and columns by position, exactly.
type DiffOptions struct {
	// Scan applies to both tables: columns, filter, rows, damage policy. A column in Columns may be missing from one of
	// them.
	Scan ScanSpec
	// On are the columns by which rows are matched. Rows with the same key are matched in three steps: first those
	// that are equal, in any order, then those that are equal within the tolerance, then the rest in order. nil matches
	// rows by position.
	On []string
	// Absolute and Relative are the tolerance for floating-point numbers: an absolute difference, or a fraction of the
	// larger magnitude.
	Absolute, Relative float64
	// Examples is how many differing rows are kept; 0 means 10, -1 none.
	Examples int
	// Memory is how many bytes of rows On may hold; 0 means 1 GiB. Larger tables are partitioned by key and read
	// several times; the rows of a single key must fit.
	Memory int64
}

// keyMetadata is the metadata of a field that is part of the primary key: its position in the key, from 1.
const keyMetadata = "stoa.key"

// PrimaryKey returns the columns of the table's primary key, in order, if its format knows one or one was kept from the
// table it was converted from. No two rows have the same key. nil means that none is known.
func (t *Table) PrimaryKey() (key []string) {
	at := map[int]string{}
	for _, f := range t.schema.Fields() {
		if v, ok := f.Metadata.GetValue(keyMetadata); ok {
			n, err := strconv.Atoi(v)
			if err != nil || at[n] != "" || len(t.schema.FieldIndices(f.Name)) != 1 {
				return nil
			}
			at[n] = f.Name
		}
	}
	for i := 1; i <= len(at); i++ {
		if at[i] == "" {
			return nil
		}
		key = append(key, at[i])
	}
	return key
}

// DiffResult reports the differences between two tables.
type DiffResult = diff.Result

// The parts of a DiffResult.
type (
	DiffColumn = diff.Column
	DiffRow    = diff.Row
	DiffCell   = diff.Cell
)

// Diff compares two tables of any formats by the meaning of their cells: integers of any width, strings and
// dictionaries of strings, decimals of any scale, dates and timestamps of any unit are compared by value. All NaN are
// equal, -0 equals 0, and null equals null. A number, date or time equals the text that spells it. Differences between
// the schemas are reported separately from those between rows. A column whose two types have nothing in common is
// reported and not compared.
func Diff(ctx context.Context, a, b *Table, o DiffOptions) (*DiffResult, error) {
	var in [2]diff.Input
	for i, t := range []*Table{a, b} {
		spec := o.Scan
		spec.Columns = t.columnsThere(o.Scan.Columns, b, a)
		sc, err := t.ScanSchema(spec)
		if err != nil {
			return nil, err
		}
		in[i] = diff.Input{Schema: sc, Scan: func() iter.Seq2[arrow.RecordBatch, error] { return t.Scan(ctx, spec) }}
	}
	do := diff.Options{On: o.On, Absolute: o.Absolute, Relative: o.Relative, Examples: max(0, o.Examples),
		Memory: o.Memory}
	if o.Examples == 0 {
		do.Examples = 10
	}
	if do.Memory <= 0 {
		do.Memory = 1 << 30
	}
	return diff.Run(ctx, in[0], in[1], do)
}

// columnsThere returns names without those that t lacks but one of others has.
func (t *Table) columnsThere(names []string, others ...*Table) []string {
	if names == nil {
		return nil
	}
	has := func(t *Table, name string) bool {
		_, err := t.ScanSchema(ScanSpec{Columns: []string{name}})
		return err == nil
	}
	out := []string{}
	for _, n := range names {
		elsewhere := false
		for _, o := range others {
			elsewhere = elsewhere || has(o, n)
		}
		if has(t, n) || !elsewhere { // a column that no table has is reported by the scan
			out = append(out, n)
		}
	}
	return out
}
