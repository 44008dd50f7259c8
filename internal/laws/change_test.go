package laws_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
)

var changeSchema = arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)

func changeRows(t *testing.T, text string) arrow.RecordBatch {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, changeSchema, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func onceRows(b arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(b, nil) }
}

// newChanger makes a table with columns a and b in a directory of its own.
func newChanger(t *testing.T, o stoa.OpenOptions) *stoa.Changer {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t")
	if err := stoa.CreateTable(t.Context(), dir, changeSchema, stoa.CreateTableOptions{}, o); err != nil {
		t.Fatal(err)
	}
	c, err := stoa.OpenChanger(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func countRows(t *testing.T, c *stoa.Changer) int64 {
	t.Helper()
	tb, err := c.Open(t.Context(), stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	n, err := tb.Count(t.Context(), stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wrongLoad writes the field rows in place of those passed to it.
type wrongLoad struct {
	format.Load
	rows arrow.RecordBatch
}

func (w wrongLoad) Write(ctx context.Context, _ arrow.RecordBatch) error {
	return w.Load.Write(ctx, w.rows)
}

// TestWrongLoadsDoNotCount: a load whose segment does not contain the rows passed to it leaves the table unchanged.
func TestWrongLoadsDoNotCount(t *testing.T) {
	good := changeRows(t, `[{"a":1,"b":"x"},{"a":2,"b":null}]`)
	written := good
	var formats []format.Format
	for _, f := range stoa.Formats {
		if f.Change != nil && f.Change.Append != nil {
			change, right := *f.Change, f.Change.Append
			change.Append = func(ctx context.Context, p format.TablePlace, sc *arrow.Schema,
				o format.LoadOptions) (format.Load, error) {
				l, err := right(ctx, p, sc, o)
				return wrongLoad{l, written}, err
			}
			f.Change = &change
			formats = append(formats, f)
		}
	}
	c := newChanger(t, stoa.OpenOptions{Formats: formats})
	dir := c.Place().Dir
	load := func() error {
		r, err := c.Append(t.Context(), changeSchema, onceRows(good), stoa.AppendOptions{})
		if err == nil && !r.Checked {
			t.Error("the load was not checked:", r.Unchecked)
		}
		return err
	}
	if err := load(); err != nil || countRows(t, c) != 2 {
		t.Fatalf("%v, %d rows", err, countRows(t, c))
	}
	for _, bad := range []string{`[{"a":1,"b":"x"}]`, `[{"a":1,"b":null},{"a":2,"b":"x"}]`,
		`[{"a":1,"b":"x"},{"a":3,"b":null}]`} {
		written = changeRows(t, bad)
		if err := load(); !stoa.IsUnproven(err) {
			t.Errorf("%s: %v", bad, err)
		}
		if n := countRows(t, c); n != 2 {
			t.Errorf("%s: %d rows", bad, n)
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "Fact/Part0/Segment_*/*"))
	if len(left) == 0 {
		t.Error("the first segment is missing")
	}
	for _, name := range left {
		if !strings.Contains(name, "Segment_0") {
			t.Errorf("%s is left", name)
		}
	}
}

// state is the checksum of every file below dir, except locks, which come and go.
func state(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	out := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".lock") {
			return err
		}
		b, err := os.ReadFile(name)
		out[name] = sha256.Sum256(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// changes are all changes of a table; each returns its report.
var changes = []struct {
	name string
	do   func(ctx context.Context, c *stoa.Changer, rows arrow.RecordBatch, dry bool) (any, error)
}{
	{"append rows", func(ctx context.Context, c *stoa.Changer, rows arrow.RecordBatch, dry bool) (any, error) {
		r, err := c.Append(ctx, rows.Schema(), onceRows(rows), stoa.AppendOptions{DryRun: dry})
		return r.Rows, err
	}},
	{"update rows", func(ctx context.Context, c *stoa.Changer, _ arrow.RecordBatch, dry bool) (any, error) {
		v := "5"
		return c.Update(ctx, stoa.UpdateOptions{Where: "a = 1", Set: map[string]*string{"a": &v, "b": nil},
			DryRun: dry})
	}},
	{"delete rows", func(ctx context.Context, c *stoa.Changer, _ arrow.RecordBatch, dry bool) (any, error) {
		return c.Delete(ctx, stoa.DeleteOptions{Where: "a = 2", DryRun: dry})
	}},
	{"merge indexes", func(ctx context.Context, c *stoa.Changer, _ arrow.RecordBatch, dry bool) (any, error) {
		return c.MergeIndexes(ctx, stoa.MergeIndexesOptions{DryRun: dry})
	}},
	{"compact segments", func(ctx context.Context, c *stoa.Changer, _ arrow.RecordBatch, dry bool) (any, error) {
		return c.Compact(ctx, stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}, DryRun: dry})
	}},
	{"add columns", func(ctx context.Context, c *stoa.Changer, _ arrow.RecordBatch, dry bool) (any, error) {
		return nil, c.AddColumn(ctx, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
			stoa.AddColumnOptions{DryRun: dry})
	}},
	{"drop columns", func(ctx context.Context, c *stoa.Changer, _ arrow.RecordBatch, dry bool) (any, error) {
		return nil, c.DropColumn(ctx, stoa.DropColumnOptions{Column: "b", DryRun: dry})
	}},
	{"clean tables", func(ctx context.Context, c *stoa.Changer, _ arrow.RecordBatch, dry bool) (any, error) {
		return c.Clean(ctx, stoa.CleanOptions{DryRun: dry})
	}},
	{"delete segments", func(ctx context.Context, c *stoa.Changer, _ arrow.RecordBatch, dry bool) (any, error) {
		return nil, c.DeleteSegments(ctx, stoa.DeleteSegmentsOptions{Segments: []string{"0.1"}, DryRun: dry})
	}},
	{"drop tables", func(ctx context.Context, c *stoa.Changer, _ arrow.RecordBatch, dry bool) (any, error) {
		r, err := c.Drop(ctx, stoa.DropOptions{DryRun: dry})
		return r.Dir, err
	}},
}

// TestDryRuns: a dry run has the same result as the change that follows, but only the change modifies the table's
// files.
func TestDryRuns(t *testing.T) {
	c := newChanger(t, stoa.OpenOptions{})
	rows := changeRows(t, `[{"a":1,"b":"x"},{"a":2,"b":null},{"a":3,"b":"y"}]`) // the last one stays in its segment
	dir := c.Place().Dir
	for _, x := range changes {
		before := state(t, dir)
		dry, err := x.do(t.Context(), c, rows, true)
		if err != nil {
			t.Fatalf("%s, dry: %v", x.name, err)
		}
		if !reflect.DeepEqual(before, state(t, dir)) {
			t.Errorf("%s: the dry run changed the table", x.name)
		}
		real, err := x.do(t.Context(), c, rows, false)
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if !reflect.DeepEqual(dry, real) {
			t.Errorf("%s: the dry run reported %+v, the change %+v", x.name, dry, real)
		}
		if _, err := os.Stat(dir); x.name == "drop tables" {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Error("the table still exists:", err)
			}
		} else if reflect.DeepEqual(before, state(t, dir)) && x.name != "merge indexes" { // loads merge theirs
			t.Errorf("%s changed nothing", x.name)
		}
	}
}

// TestDryRunsRefuse: if a change is refused before anything is written, its dry run is refused with the same error.
func TestDryRunsRefuse(t *testing.T) {
	c := newChanger(t, stoa.OpenOptions{})
	ctx, dir := t.Context(), c.Place().Dir
	other := arrow.NewSchema([]arrow.Field{{Name: "z", Type: arrow.PrimitiveTypes.Int64}}, nil)
	words := "a text"
	for name, do := range map[string]func(dry bool) error{
		"append": func(dry bool) error {
			_, err := c.Append(ctx, other, func(func(arrow.RecordBatch, error) bool) {},
				stoa.AppendOptions{DryRun: dry})
			return err
		},
		"append, option": func(dry bool) error {
			_, err := c.Append(ctx, changeSchema, func(func(arrow.RecordBatch, error) bool) {},
				stoa.AppendOptions{Opts: map[string]string{"x": "y"}, DryRun: dry})
			return err
		},
		"create": func(dry bool) error {
			return stoa.CreateTable(ctx, dir, other, stoa.CreateTableOptions{DryRun: dry}, stoa.OpenOptions{})
		},
		"delete": func(dry bool) error { _, err := c.Delete(ctx, stoa.DeleteOptions{DryRun: dry}); return err },
		"update": func(dry bool) error {
			_, err := c.Update(ctx, stoa.UpdateOptions{Where: "true", Set: map[string]*string{"a": &words},
				DryRun: dry})
			return err
		},
		"add column": func(dry bool) error {
			return c.AddColumn(ctx, changeSchema.Field(0), stoa.AddColumnOptions{DryRun: dry})
		},
		"drop column": func(dry bool) error {
			return c.DropColumn(ctx,
				stoa.DropColumnOptions{Column: "z", DryRun: dry})
		},
		"segments": func(dry bool) error {
			return c.DeleteSegments(ctx, stoa.DeleteSegmentsOptions{Segments: []string{"7"}, DryRun: dry})
		},
		"compact": func(dry bool) error {
			_, err := c.Compact(ctx, stoa.CompactOptions{CompactOptions: format.CompactOptions{Segments: []string{"7"}},
				DryRun: dry})
			return err
		},
		"merge": func(dry bool) error {
			_, err := c.MergeIndexes(ctx, stoa.MergeIndexesOptions{Segments: []string{"7"}, DryRun: dry})
			return err
		},
	} {
		before := state(t, dir)
		dry, real := do(true), do(false)
		if dry == nil || real == nil || dry.Error() != real.Error() || !errors.Is(dry, fault.Invalid) {
			t.Errorf("%s: dry run: %v, change: %v", name, dry, real)
		}
		if !reflect.DeepEqual(before, state(t, dir)) {
			t.Errorf("%s: the table changed", name)
		}
	}
}

// TestUnchangeable: a format that cannot change its tables refuses each change by name, and touches nothing.
func TestUnchangeable(t *testing.T) {
	seen := 0
	rows := changeRows(t, `[{"a":1,"b":"x"}]`)
	for _, f := range stoa.Formats {
		if f.Change != nil || f.Create == nil || len(f.Extensions) == 0 {
			continue
		}
		seen++
		t.Run(f.Name, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "t"+f.Extensions[0])
			b := rows
			if f.Name == "cfile" { // it has one column
				b = array.NewRecordBatch(arrow.NewSchema(changeSchema.Fields()[:1], nil), rows.Columns()[:1],
					rows.NumRows())
			}
			w, err := stoa.Create(t.Context(), name, b.Schema(), stoa.CreateOptions{To: f.Name})
			if err == nil {
				err = w.Write(t.Context(), b)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := state(t, dir)
			c, err := stoa.OpenChanger(t.Context(), name, stoa.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(f.Name, c.Format()) { // all dialects are read as one format
				t.Errorf("opened as format %s", c.Format())
			}
			for _, x := range changes {
				for _, dry := range []bool{true, false} {
					_, err := x.do(t.Context(), c, rows, dry)
					if !errors.Is(err, fault.Unsupported) ||
						!strings.Contains(err.Error(), "format "+c.Format()+" cannot "+x.name) {
						t.Errorf("%s: %v", x.name, err)
					}
				}
			}
			if _, err := stoa.Segments(t.Context(), name, stoa.OpenOptions{}); !errors.Is(err, fault.Unsupported) {
				t.Error(err)
			}
			if err := stoa.CreateTable(t.Context(), name, changeSchema, stoa.CreateTableOptions{},
				stoa.OpenOptions{From: f.Name}); !errors.Is(err, fault.Unsupported) {
				t.Error(err)
			}
			if !reflect.DeepEqual(before, state(t, dir)) {
				t.Error("the file was touched")
			}
		})
	}
	if seen < 4 {
		t.Errorf("only %d formats were tried, expected 4 or more", seen)
	}
}

// TestChangeOptionsAreJSON: the options of a change survive a round trip through JSON.
func TestChangeOptionsAreJSON(t *testing.T) {
	text := "5"
	for _, o := range []any{
		stoa.CreateTableOptions{TableSpec: format.TableSpec{SortColumns: []string{"a"}, Inverted: []string{"a"},
			LongStrings: []string{"b"}, Partition: []string{"c"},
			BucketBy: []string{"a"}, Buckets: 2, Properties: map[string]string{"k": "v"}}, DryRun: true},
		stoa.AppendOptions{Opts: map[string]string{"k": "v"}, Tasks: 2, Dictionary: "two-pass", NoCheck: true,
			DryRun: true, Overwrite: true, Bad: stoa.BadForce,
			Partition: format.PartitionValues{"c": &text}},
		stoa.DeleteOptions{Where: "a = 1", DryRun: true},
		stoa.UpdateOptions{Where: "a = 1", Set: map[string]*string{"a": &text, "b": nil}, NoCheck: true,
			DryRun: true},
		stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true, Segments: []string{"1"}}, DryRun: true},
		stoa.AddColumnOptions{Default: &text, DryRun: true},
		stoa.DropColumnOptions{Column: "a", DryRun: true},
		stoa.DeleteSegmentsOptions{Segments: []string{"1"}, DryRun: true},
		stoa.MergeIndexesOptions{Segments: []string{"1"}, DryRun: true},
		stoa.CleanOptions{OlderThan: time.Hour, DryRun: true},
		stoa.DropOptions{DryRun: true},
		stoa.RenameOptions{To: "x", DryRun: true},
		stoa.TruncateOptions{DryRun: true},
	} {
		v := reflect.ValueOf(o)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("json") == "-" { // in JSON it is inside Opts, see below
				continue
			}
			if v.Field(i).IsZero() && v.Field(i).Kind() != reflect.Func {
				t.Errorf("%T.%s is zero, and so not tested", o, v.Type().Field(i).Name)
			}
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(v.Type())
		if err := json.Unmarshal(b, back.Interface()); err != nil || !reflect.DeepEqual(back.Elem().Interface(), o) {
			t.Errorf("%s: %v, %+v", b, err, back.Elem())
		}
	}
	var back stoa.AppendOptions
	b, err := json.Marshal(stoa.AppendOptions{Typed: stoaTyped{"a": "1", "b": "2"}, Opts: map[string]string{"b": "3"}})
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if want := map[string]string{"a": "1", "b": "3"}; err != nil || !reflect.DeepEqual(back.Opts, want) {
		t.Errorf("typed options: %s, %v, expected %v", b, err, want)
	}
}

// stoaTyped are options of a format.
type stoaTyped map[string]string

func (o stoaTyped) Strings() map[string]string { return maps.Clone(o) }
func (stoaTyped) Formats() []string            { return []string{"carbon"} }

// TestChangesKeepToLimits: a table that exceeds the limits cannot be opened for changes; a damaged table can be opened,
// for instance to be dropped.
func TestChangesKeepToLimits(t *testing.T) {
	c := newChanger(t, stoa.OpenOptions{})
	dir := c.Place().Dir
	for _, l := range []format.Limits{{Fields: 1}, {Opening: 1}, {Metadata: 1}} {
		if _, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{Limits: l}); !errors.Is(err, fault.Limit) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	wide := stoa.OpenOptions{Limits: format.Limits{Fields: 100, Opening: 1 << 20}}
	if _, err := stoa.OpenChanger(t.Context(), dir, wide); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Metadata", "tablestatus"), []byte("?"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := stoa.OpenChanger(t.Context(), dir, wide); err != nil {
		t.Error(err)
	}
}
