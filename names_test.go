package stoa

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/internal/fieldnames"
	"stoa/region"
	"stoa/store"
)

// namedTable returns a table of two rows with an integer column and, if nested, a struct column with a field, of the
// given names.
func namedTable(flat, below string, nested bool) arrow.RecordBatch {
	b := array.NewInt32Builder(memory.DefaultAllocator)
	b.AppendValues([]int32{1, 2}, nil)
	ints := b.NewArray()
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32},
		{Name: flat, Type: arrow.PrimitiveTypes.Int32}}
	cols := []arrow.Array{ints, ints}
	if nested {
		t := arrow.StructOf(arrow.Field{Name: below, Type: arrow.PrimitiveTypes.Int32})
		s := array.NewStructData(array.NewData(t, 2, []*memory.Buffer{nil}, []arrow.ArrayData{ints.Data()}, 0, 0))
		fields, cols = append(fields, arrow.Field{Name: "s", Type: t}), append(cols, s)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, 2)
}

// named writes a table to a tree, and returns the findings about what was altered.
func named(t *testing.T, to string, rec arrow.RecordBatch) (*store.Memory, string, []region.Finding) {
	t.Helper()
	ctx, name := context.Background(), "o."+to
	tree := store.NewMemory(nil)
	w, err := Create(ctx, name, rec.Schema(), CreateOptions{To: to, Sink: tree.Sink(name)})
	if err == nil {
		defer w.Abort(ctx)
		err = w.Write(ctx, rec)
	}
	if err != nil {
		t.Fatalf("%s: %v", to, err)
	}
	s, err := w.Close(ctx)
	if err != nil || !s.Checked {
		t.Fatalf("%s: checked %v, %v", to, s.Checked, err)
	}
	return tree, name, s.Altered
}

// TestInvalidNamesAreEscaped: every format writes column names that are not UTF-8 in escaped form, with a finding for
// each, and the check of the output passes.
func TestInvalidNamesAreEscaped(t *testing.T) {
	for _, f := range Formats {
		if f.Create == nil {
			continue
		}
		rec := namedTable("fi\xf8d", "\xff", f.Name != "cfile")
		tree, name, found := named(t, f.Name, rec)
		want := []string{`fi\xf8d`}
		if rec.NumCols() > 2 {
			want = append(want, `s.\xff`)
		}
		var columns []string
		for _, x := range found {
			if x.Code == "output.names.utf8" && x.Severity == region.Error {
				columns = append(columns, x.Column)
			}
		}
		if !slices.Equal(columns, want) {
			t.Errorf("%s: got findings for %q, want %q", f.Name, columns, want)
		}
		r, err := Open(t.Context(), name, OpenOptions{Tree: tree, From: f.Name})
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if sc := r.Schema().String(); !strings.Contains(sc, `fi\xf8d`) || len(r.Findings()) > 0 {
			t.Errorf("%s: got %s, %v, want the escaped name and no findings", f.Name, sc, r.Findings())
		}
		r.Close()
	}
}

// TestDamagedNames: in every format a name that damage turns into invalid UTF-8 fails opening, or both reading and
// verifying, and recovery yields valid names.
func TestDamagedNames(t *testing.T) {
	isError := func(f region.Finding) bool { return f.Severity >= region.Error }
	for _, f := range Formats {
		if f.Create == nil {
			continue
		}
		tree, name, _ := named(t, f.Name, namedTable("nameqqqq", "belowqqqq", f.Name != "cfile"))
		for _, word := range []string{"nameqqqq", "belowqqqq"} {
			files, hit := map[string][]byte{}, false
			for _, n := range tree.Names() {
				b := tree.Bytes(n)
				hit = hit || bytes.Contains(b, []byte(word))
				files[n] = bytes.ReplaceAll(b, []byte(word), []byte(word[:len(word)-1]+"\xf8"))
			}
			if !hit {
				continue // the name is compressed, or a file's name only
			}
			o := OpenOptions{Tree: store.NewMemory(files), From: f.Name}
			r, err := Open(t.Context(), name, o)
			if err == nil {
				if len(fieldnames.Invalid(r.Schema().Fields())) == 0 != !slices.ContainsFunc(r.Findings(), isError) {
					t.Errorf("%s, %s: got schema %s with findings %v", f.Name, word, r.Schema(), r.Findings())
				}
				if len(fieldnames.Invalid(r.Schema().Fields())) == 0 {
					r.Close()
					continue // another copy of the name is intact
				}
				for b, err := range r.Scan(t.Context(), ScanSpec{}) {
					if err == nil {
						t.Errorf("%s, %s: got %d rows before the error, want none", f.Name, word, b.NumRows())
					}
				}
				r.Close()
			}
			for _, o.Depth = range []format.Depth{format.Quick, format.Sums} {
				bad := false
				for x, err := range Verify(t.Context(), name, o) {
					bad = bad || err != nil || isError(x)
				}
				if !bad {
					t.Errorf("%s, %s: open: %v, but no error from verify (%s)", f.Name, word, err, o.Depth)
				}
			}
			o.Recover = true
			out := store.NewMemory(nil)
			if r, err = Open(t.Context(), name, o); err != nil {
				t.Logf("%s, %s: not recovered: %v", f.Name, word, err)
				continue
			}
			found := r.Findings()
			s, err := Convert(t.Context(), r, ScanSpec{Damaged: SkipRows}, "o.arrow",
				CreateOptions{Sink: out.Sink("o.arrow")})
			if r.Close(); err != nil {
				t.Errorf("%s, %s: converting what was recovered: %v", f.Name, word, err)
			} else if !slices.ContainsFunc(append(found, s.Altered...), isError) {
				t.Errorf("%s, %s: recovered without a finding, want one", f.Name, word)
			} else if r, err = Open(t.Context(), "o.arrow", OpenOptions{Tree: out}); err != nil ||
				len(fieldnames.Invalid(r.Schema().Fields())) > 0 {
				t.Errorf("%s, %s: opening what was recovered: got %v, want valid names", f.Name, word, err)
			}
		}
	}
}
