package formattest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/nest"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// traceless: damage does not spread. It damages a page or dictionary of every kind that the format writes in many ways,
// in tables without checksums (Suite.NoChecksums). Under both damage policies, and from a recovered reader, each cell
// outside of that page is as written unless it is reported as lost, and the rows read and those reported as lost add up
// to all rows. Values of the damaged page itself are not checked: without a checksum they cannot be known to be wrong.
func (s Suite) traceless(t *testing.T) {
	tried, failed, recovered := 0, 0, 0
	for i, opts := range append([]map[string]string{s.SmallPages}, s.NoChecksums...) {
		var types []arrow.DataType
		for _, typ := range s.Types {
			if s.Fits(opts, typ) {
				types = append(types, typ)
			}
		}
		tab := s.numbered(t, uint64(20+i), opts, types)
		r := rand.New(rand.NewPCG(uint64(i), 20))
		for _, v := range tab.victims(t, r) {
			for range 3 {
				d := tab.damage(r, v)
				d.scans(t, r.IntN(2)*37, &failed)
				if tried++; tried%4 == 0 {
					d.recovers(t, &recovered)
				}
			}
		}
	}
	t.Logf("%d pages damaged, %d scans failed with an error, %d recovered", tried, failed, recovered)
	if tried == 0 {
		t.Error("no page damaged, want some")
	}
}

// numbered writes a table whose first two columns hold the row number, so that each row read can be identified by the
// one that is not damaged.
func (s *Suite) numbered(t *testing.T, seed uint64, opts map[string]string, types []arrow.DataType) *table {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 9))
	tab := &table{suite: s, mem: store.NewMemory(nil), name: "t"}
	fields := []arrow.Field{{Name: "n0", Type: arrow.PrimitiveTypes.Int32},
		{Name: "n1", Type: arrow.PrimitiveTypes.Int32}}
	for i, typ := range types {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: typ, Nullable: i%2 == 1})
		if i >= len(types)/2 { // each kind of page with and without nulls
			fields[i+2].Nullable = !fields[i+2].Nullable
		}
	}
	tab.schema = arrow.NewSchema(fields, nil)
	cols := make([]arrow.Array, len(fields))
	for i, f := range fields {
		if i < 2 {
			b := array.NewInt32Builder(memory.DefaultAllocator)
			for n := range s.Rows {
				b.Append(int32(n))
			}
			cols[i] = b.NewArray()
			continue
		}
		nulls := 0
		if f.Nullable {
			nulls = 20
		}
		cols[i] = Random(r, f.Type, s.Rows, nulls)
	}
	b := array.NewRecordBatch(tab.schema, cols, int64(s.Rows))
	ctx := context.Background()
	w, err := s.Format.Create(ctx, tab.mem.Sink(tab.name), tab.schema, format.WriteOptions{Rows: -1, Opts: opts})
	if err == nil {
		err = w.Write(ctx, b)
	}
	if err == nil {
		_, err = w.Close(ctx)
	}
	if err != nil {
		t.Fatalf("%v %v: %v", types, opts, err)
	}
	tab.add(b)
	return tab
}

// victim is a page or dictionary to be damaged.
type victim struct {
	what  string
	field int // the top-level field of its values
	at    fault.Span
	rows  vec.Range // of the table
}

// victims returns a random page of each column, and the dictionaries. Pages whose rows are unknown until their parents
// are decoded are left out.
func (tab *table) victims(t *testing.T, r *rand.Rand) (out []victim) {
	src, _ := tab.open(t)
	columns := src.Reader.Columns()
	byCol := make([][]victim, len(columns))
	next := make([]int64, len(columns)) // the row after the pages so far
	dicts := map[fault.Span]bool{}
	eachPage(t, src, func(col int, c format.Chunk, p format.Page, dict *vec.Vector) {
		if d, ok := c.Dict(); ok && len(d.Spans) > 0 && !dicts[d.Spans[0]] {
			dicts[d.Spans[0]] = true
			out = append(out, victim{"dictionary", columns[col].Path[0], d.Spans[0],
				vec.Range{From: 0, To: int64(tab.suite.Rows)}})
		}
		rows := p.Rows
		if columns[col].Parent >= 0 || len(p.Spans) == 0 {
			return
		}
		v := decodePage(t, src, col, c, p, dict, nil)
		defer v.Release()
		if rows < 0 {
			if rows = int64(v.Len()); v.Rep() != nil {
				rows = int64(nest.CountRows(v.Rep()))
			}
		}
		from := next[col]
		next[col] = from + rows
		at := vec.Range{From: from, To: from + rows}
		if len(v.Rep()) > 0 && v.Rep()[0] > 0 { // it ends a row of the previous page
			at.From--
		}
		byCol[col] = append(byCol[col], victim{fmt.Sprintf("page %d of %s", p.Ordinal, columns[col].Name),
			columns[col].Path[0], p.Spans[len(p.Spans)-1], at})
	})
	for _, vs := range byCol {
		if len(vs) > 0 {
			out = append(out, vs[r.IntN(len(vs))])
		}
	}
	return out
}

// damagedTable is a copy of a table with one damaged page.
type damagedTable struct {
	*table
	victim
	how  string
	copy *store.Memory
}

// damage overwrites some bytes of a page in a copy of the table.
func (tab *table) damage(r *rand.Rand, v victim) *damagedTable {
	files := map[string][]byte{}
	for _, name := range tab.mem.Names() {
		files[name] = slices.Clone(tab.mem.Bytes(name))
	}
	b := files[v.at.Object][v.at.Off:v.at.End()]
	d := &damagedTable{table: tab, victim: v}
	switch at := r.IntN(len(b)); r.IntN(5) {
	case 0:
		b[at] ^= 1 << r.IntN(8)
		d.how = fmt.Sprintf("bit flipped in byte %d", at)
	case 1:
		n := min(1+r.IntN(16), len(b)-at)
		for i := range b[at : at+n] {
			b[at+i] = byte(r.Uint32())
		}
		d.how = fmt.Sprintf("%d random bytes from byte %d on", n, at)
	case 2:
		clear(b[at:])
		d.how = fmt.Sprintf("zeros from byte %d on", at)
	case 3:
		for i := range b[at:] {
			b[at+i] = 0xff
		}
		d.how = fmt.Sprintf("ones from byte %d on", at)
	default: // near the end, where offsets and restart points are
		at = len(b) - 1 - r.IntN(min(8, len(b)))
		b[at] ^= byte(1 + r.IntN(255))
		d.how = fmt.Sprintf("byte %d of %d changed", at, len(b))
	}
	d.copy = store.NewMemory(files)
	return d
}

func (d *damagedTable) target() format.Target { return format.Target{Tree: d.copy, Name: d.name} }

func (d *damagedTable) source(r format.Reader) scan.Source {
	return scan.Source{Reader: r, Objects: scan.NewObjects(d.copy), Dicts: scan.NewDicts(),
		Limits: format.Limits{}.WithDefaults()}
}

// scans reads the table under both policies, in batches of the given size.
func (d *damagedTable) scans(t *testing.T, batch int, failed *int) {
	t.Helper()
	ctx := context.Background()
	r, err := d.suite.Format.Open(ctx, d.target(), format.OpenOptions{Limits: format.Limits{}.WithDefaults()})
	if err != nil { // the format looks at pages when it opens a file
		*failed++
		return
	}
	defer r.Close()
	for _, policy := range []scan.Damaged{scan.SkipRows, scan.NullCells} {
		what := fmt.Sprintf("%v, %s damaged (%s), policy %d", d.victim.at, d.what, d.how, policy)
		rows, lost, err := d.read(t, what, d.source(r), scan.Spec{Damaged: policy, Batch: batch})
		switch {
		case errors.Is(err, fault.Bug):
			t.Errorf("%s: %v", what, err)
		case err != nil:
			*failed++
		case policy == scan.SkipRows && rows+lost != int64(d.suite.Rows):
			t.Errorf("%s: got %d rows and %d lost, want %d in all", what, rows, lost, d.suite.Rows)
		}
	}
}

// recovers reads the table through recovery.
func (d *damagedTable) recovers(t *testing.T, recovered *int) {
	t.Helper()
	if d.suite.Format.Recover == nil {
		return
	}
	r, _, err := d.suite.Format.Recover(context.Background(), d.target(),
		format.OpenOptions{Limits: format.Limits{}.WithDefaults()})
	if err != nil {
		if errors.Is(err, fault.Bug) {
			t.Errorf("%s damaged (%s), recover: %v", d.what, d.how, err)
		}
		return
	}
	defer r.Close()
	*recovered++
	what := fmt.Sprintf("%v, %s damaged (%s), recover", d.victim.at, d.what, d.how)
	if _, _, err := d.read(t, what, d.source(r), scan.Spec{Damaged: scan.SkipRows}); errors.Is(err, fault.Bug) {
		t.Errorf("%s: %v", what, err)
	}
}

// read scans the damaged column and the next one, and compares each row with the one written under its number.
func (d *damagedTable) read(t *testing.T, what string, src scan.Source, spec scan.Spec) (rows, lost int64, err error) {
	t.Helper()
	defer src.Dicts.Close()
	fields := []int{0, 1}
	for _, f := range []int{d.field, (d.field + 1) % d.schema.NumFields()} {
		if f > 1 {
			fields = append(fields, f)
		}
	}
	for _, f := range fields {
		name := d.schema.Field(f).Name
		if len(src.Reader.Schema().FieldIndices(name)) == 0 { // not recovered
			return 0, 0, nil
		}
		spec.Columns = append(spec.Columns, name)
	}
	null := make([]vec.Ranges, d.schema.NumFields()) // cells that are reported as lost
	var reported []vec.Range
	spec.Lost = func(l region.Loss) {
		at := vec.Range{From: l.Rows[0], To: l.Rows[1]}
		if at.To < 0 {
			at.To = int64(d.suite.Rows)
		}
		reported = append(reported, at)
		if l.Column != "" && len(d.schema.FieldIndices(l.Column)) == 0 {
			t.Errorf("%s: a loss is reported in column %q, which the table does not have", what, l.Column)
		}
		for i, f := range d.schema.Fields() {
			if l.Column == f.Name {
				null[i] = append(null[i], at)
			}
		}
	}
	var held [][]string
	for b, e := range scan.Run(context.Background(), src, spec, nil) {
		if e != nil {
			err = e
			break
		}
		for i := range int(b.NumRows()) {
			var row []string
			for _, c := range b.Columns() {
				row = append(row, Cell(c, i))
			}
			held = append(held, row)
		}
	}
	for _, row := range held { // after the scan: losses may be reported after the rows
		d.hold(t, what, fields, row, null)
	}
	slices.SortFunc(reported, func(a, b vec.Range) int { return cmp.Compare(a.From, b.From) })
	var all vec.Ranges
	for _, at := range reported {
		all = all.Add(at)
	}
	return int64(len(held)), all.Len(), err
}

// hold compares a row's fields with those of the row that was written, which the undamaged row number identifies.
func (d *damagedTable) hold(t *testing.T, what string, fields []int, row []string, null []vec.Ranges) {
	t.Helper()
	id := 0
	if d.field == 0 {
		id = 1
	}
	var n int64
	if _, err := fmt.Sscan(row[id], &n); err != nil || n < 0 || n >= int64(len(d.cells)) {
		t.Errorf("%s: got a row numbered %s, want 0 to %d", what, row[id], len(d.cells)-1)
		return
	}
	for i, f := range fields {
		mine := f == d.field && n >= d.rows.From && n < d.rows.To
		if want := d.cells[n][f]; row[i] != want && !mine && !(row[i] == "null" && contains(null[f], n)) {
			t.Errorf("%s (rows %v): row %d, column %d: got %s, want %s", what, d.rows, n, f, row[i], want)
		}
	}
}

func contains(rs vec.Ranges, n int64) bool {
	return slices.ContainsFunc(rs, func(r vec.Range) bool { return n >= r.From && n < r.To })
}
