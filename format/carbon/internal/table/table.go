// Package table reads a table of data files: its schema and status, segments, partitions, deleted rows, dictionaries
// and indexes as tables. Open opens any place, a managed table or a directory of files (ReadFolder); RecoverTable opens
// as much as can be read of a damaged one.
//
// A segment's files are found through its segment file and index files, not by listing directories, and only
// tablestatus determines which segments count. Deleted rows are an overlay of row ordinals; the times in the names of
// delete deltas must fit the update status.
package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/internal/check"
	"stoa/store"
)

// Table is a format.Reader of data files that share a schema.
type Table struct {
	Tree  store.Tree
	Name  string
	Opts  format.OpenOptions
	sc    *arrow.Schema
	Roots []*schema.Column
	Phys  []schema.Physical
	parts []Part
	meta  []format.KeyValue
	Dates page.DateRule
	// Calendar of dates before 15 October 1582; "": that of each file's writer.
	Calendar Calendar
	Zone     *time.Location // of texts without one
	// Ids of the columns that the table has or had. Nil means that there is no schema, and that columns match by name.
	Ids      map[string]bool
	Blocklet int64              // formats 1 and 2: carbon.blocklet.size of the writer; 0: unknown
	Dicts    *dict.Dictionaries // nil: there are none

	saved *check.Reporter // receives the findings of recovery; nil: damage is an error

	gone      map[string]lost  // missing files that an index names; damaged index files
	ambiguous map[string]error // in recovery: columns, by id, for which the schema has two different defaults

	mu    sync.Mutex
	Files map[string]*datafile.DataFile // opened recently
	order []string
}

// Part is a data file of a table.
type Part struct {
	Name    string
	stamp   string
	rows    int64 // -1: unknown until it is opened
	bytes   int64
	Segment string
	blocks  []layout.BlockIndex   // entries for the file in an index file; nil: none
	columns []layout.ColumnSchema // of that index file
	values  []string              // of the partition columns: name=value
	Update  *status.Update        // entry in the update status; nil: no rows are deleted
	agreed  int32                 // 1: the file has been compared with its entries in the index
}

// Schema is format.Reader.Schema.
func (t *Table) Schema() *arrow.Schema { return t.sc }

// Meta is format.Reader.Meta.
func (t *Table) Meta() []format.KeyValue { return t.meta }

// Order is format.Reader.Order: rows are sorted within data files only.
func (t *Table) Order() []format.Key { return nil }

// Close is format.Reader.Close; files are not kept open.
func (t *Table) Close() error { return nil }

// Columns is format.Reader.Columns.
func (t *Table) Columns() []format.Column {
	out := make([]format.Column, len(t.Phys))
	for i, p := range t.Phys {
		out[i] = p.Column
	}
	return out
}

// Parts is format.Reader.Parts: the data files, and a part for each missing file.
func (t *Table) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for _, name := range layout.SortedKeys(t.gone) { // first, so that a scan without a damage policy reads nothing
			if !yield(format.Part{Ref: name, Rows: t.gone[name].rows}, nil) {
				return
			}
		}
		for _, p := range t.parts {
			if !yield(format.Part{Ref: p.Name, Stamp: p.stamp, Rows: p.rows, Bytes: p.bytes}, nil) {
				return
			}
		}
	}
}

// Missing returns the error of a part whose file is known to be missing before it is opened; nil for other parts.
func (t *Table) Missing(ref string) error { return t.gone[ref].err }

// Layout is format.Layouter.Layout: the sort order that the columns declare.
func (t *Table) Layout() (l format.Layout) {
	for _, c := range schema.SortColumns(t.Roots) {
		l.Sorted = append(l.Sorted, c.Name)
	}
	return l
}

// maxOpen is the number of data files whose footers are kept.
const maxOpen = 64

// File opens a data file, or returns it if it is cached with its footer. A file with a column that the table never had
// is Corrupt.
func (t *Table) File(ctx context.Context, name string) (*datafile.DataFile, error) {
	t.mu.Lock()
	f := t.Files[name]
	t.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := t.open(ctx, name)
	if err == nil {
		f.Hybrid = t.Hybrid(f)
		err = t.Belongs(f)
	}
	if err != nil {
		return nil, err
	}
	if t.Blocklet > 0 {
		f.Widths.Learn(int(t.Blocklet))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Keep(f)
	return f, nil
}

// Hybrid reports whether the dates and times of a file use Java's hybrid calendar. An option may decide that. Spark
// since 3.0 uses the Gregorian calendar; CarbonData supports it since 2.2, and the version is in the footer. The SDK
// uses Java's calendar, and its tables have no schema; files of formats 1 and 2 are older than 2.2. If the calendar
// cannot be determined, Java's is assumed, as CarbonData's own reader does.
func (t *Table) Hybrid(f *datafile.DataFile) bool {
	if t.Calendar != "" {
		return t.Calendar == HybridCalendar
	}
	if SaysCalendar(f) {
		return false
	}
	var major, minor int
	n, _ := fmt.Sscanf(f.Footer.Extra["version"], "%d.%d", &major, &minor)
	return t.Ids == nil || n < 2 || major < 2 || major == 2 && minor < 2
}

// SaysCalendar reports whether a file states that its dates and times are Gregorian throughout, as those of stoa do: in
// the footer or, in a row-format file, which has none, by its marker.
func SaysCalendar(f *datafile.DataFile) bool {
	return f.Stream != nil && bytes.HasPrefix(f.Header.Sync, datafile.Gregorian) ||
		strings.HasPrefix(f.Footer.Extra["written_by"], "stoa") ||
		f.Footer.Extra["calendar"] == string(ProlepticCalendar)
}

// open opens a data file; in recovery also one whose header or footer is damaged.
func (t *Table) open(ctx context.Context, name string) (*datafile.DataFile, error) {
	f, err := datafile.OpenFile(ctx, t.Tree, name, t.Opts)
	if err == nil || t.saved == nil || !errors.Is(err, fault.Corrupt) {
		return f, err
	}
	found, findings, again := datafile.RecoverFile(ctx, f, err)
	for _, x := range findings {
		t.saved.Emit(x)
	}
	if again != nil {
		return nil, err
	}
	found.Rebuilt = true
	return found, nil
}

// Keep keeps an open file for File, in place of the oldest one. The caller holds mu, or is the only user.
func (t *Table) Keep(f *datafile.DataFile) {
	name := f.At.Object
	if t.Files[name] != nil {
		return
	}
	if len(t.order) >= maxOpen {
		delete(t.Files, t.order[0])
		t.order = t.order[1:]
	}
	t.Files[name] = f
	t.order = append(t.order, name)
}

// Match returns the column of a file that corresponds to the table's column col, which is root or below it; nil if
// there is none. Top-level columns match by id (by name if there is no schema), nested ones by position.
func (t *Table) Match(f *datafile.DataFile, root, col *schema.Column) *schema.Column {
	for _, r := range f.Roots {
		if t.Ids != nil && r.ID == root.ID || t.Ids == nil && strings.EqualFold(r.Name, root.Name) {
			return descend(root, r, col)
		}
	}
	return nil
}

// Belongs returns Corrupt if a file has a column that the table never had; the schema keeps dropped columns. So a
// column with a damaged id is not mistaken for one that was added later.
func (t *Table) Belongs(f *datafile.DataFile) error {
	for _, r := range f.Roots {
		if t.Ids != nil && !t.Ids[r.ID] {
			return fault.Corruptf(f.At, "column_schema",
				"column %s has the id %s, which no column of the table has or had", r.Name, r.ID)
		}
	}
	return nil
}

// descend returns the column below have at the same position as col below want.
func descend(want, have, col *schema.Column) *schema.Column {
	if want == col {
		return have
	}
	for i, k := range want.Children {
		if i < len(have.Children) {
			if c := descend(k, have.Children[i], col); c != nil {
				return c
			}
		}
	}
	return nil
}

// AllColumns sets the table's schema from columns, which are listed at at and path. Contradictions among them are an
// error; in recovery they are reported, and names repaired.
func (t *Table) AllColumns(roots []*schema.Column, at fault.Span, path string) (err error) {
	if err := schema.CheckNames(roots); err != nil {
		if err = fault.Locate(err, at, true, path); t.saved == nil {
			return err
		}
		code := "carbon.header.damaged"
		if strings.HasPrefix(path, "schema") {
			code = "carbon.schema.damaged"
		}
		t.saved.Emit(layout.Findingf(code, at, t.Name,
			"%s: %v: names, types and order of columns may be wrong", path, err))
		schema.RepairNames(roots)
	}
	t.Roots = schema.Visible(roots)
	if t.sc, err = schema.ArrowSchema(t.Roots, nil); err == nil {
		t.Phys, err = schema.PhysicalColumns(t.Roots)
	}
	return fault.Locate(err, fault.Span{Object: t.Name}, true, "columns")
}

// Indexed returns the entries of a part in an index file; nil if there are none.
func (p *Part) Indexed() *datafile.Indexed {
	if p.blocks == nil {
		return nil
	}
	return &datafile.Indexed{Blocks: p.blocks, Columns: p.columns}
}

// Mark sets the value of an added column in all rows of the part.
func (p *Part) Mark(column, text string) { p.values = append(slices.Clip(p.values), column+"="+text) }

// lost is a part whose file is missing or cannot be read.
type lost struct {
	rows int64 // -1: unknown
	err  error
}

// partition returns the value of a partition column in a part, as text; ok is false for other columns.
func (p *Part) partition(name string) (text string, ok bool) {
	for _, v := range p.values {
		if k, x, found := strings.Cut(v, "="); found && schema.Unescape(k) == name {
			return x, true
		}
	}
	return "", false
}

// checkRows compares a file with its entries in the index file: if they differ, one of the two is damaged, or the file
// is not the one that was loaded. Row-format files are not compared, because they may have grown since.
func checkRows(f *datafile.DataFile, p *Part) error {
	if f.Stream != nil || len(p.blocks) == 0 {
		return nil
	}
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.Offset != f.FootAt && !f.Rebuilt {
			return fault.Corruptf(f.FootSpan(), "footer",
				"expected it at byte %d by the index file: one is damaged, or of another file", b.Offset)
		}
		if b.Info == nil || i >= len(f.Footer.Blocklet) {
			continue
		}
		if n := f.Footer.Blocklet[i].Rows; n != b.Count() {
			return fault.Corruptf(f.FootSpan(), fmt.Sprintf("footer.blocklet[%d].num_rows", i),
				"expected %d by the index file, found %d", b.Count(), n)
		}
		if i < len(f.Footer.Index) && !layout.SameBounds(b.Index.MinMax, f.Footer.Index[i].MinMax) {
			return fault.Corruptf(f.FootSpan(), fmt.Sprintf("footer.blocklet_index_list[%d]", i),
				"min and max differ from those in the index file: one is damaged, or of another file")
		}
	}
	if n := p.Indexed().Rows(); f.Footer.Rows != n {
		return fault.Corruptf(f.FootSpan(), "footer.num_rows", "expected %d by the index file, found %d", n,
			f.Footer.Rows)
	}
	return nil
}

// OpenIndexed opens a data file, and compares it with its entries in an index file.
func OpenIndexed(ctx context.Context, tree store.Tree, name string, x *datafile.Indexed) (*datafile.DataFile, error) {
	f, err := datafile.OpenFile(ctx, tree, name, format.OpenOptions{})
	if err != nil {
		return nil, err
	}
	return f, checkRows(f, &Part{Name: name, blocks: x.Blocks, columns: x.Columns})
}

// fileFromIndex returns a file as its index file describes it, which suffices to evaluate a filter without opening the
// file; nil if the index has no entries for blocklets. Chunk compares it with the real file.
func (p *Part) fileFromIndex() *datafile.DataFile {
	f := &datafile.DataFile{Version: 3}
	f.At.Object = p.Name
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.Info == nil {
			return nil
		}
		f.Footer.Blocklet = append(f.Footer.Blocklet, *b.Info)
		f.Footer.Index = append(f.Footer.Index, b.Index)
		f.FootAt = b.Offset
	}
	var err error
	if f.Roots, _, err = schema.ColumnTree(p.columns, f.At, "table_columns"); err != nil ||
		len(f.Footer.Blocklet) == 0 {
		return nil
	}
	for i := range f.Footer.Blocklet {
		if b := &f.Footer.Blocklet[i]; len(b.Offsets) != len(p.columns) || b.Rows < 0 {
			return nil
		}
	}
	return f
}
