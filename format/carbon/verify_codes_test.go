package carbon_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestLocalCodesOutOfRange changes the code of the last row of a page: 1 is null, 2, 3 and 4 are the values of
// the dictionary.
func TestLocalCodesOutOfRange(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(arrowmem.NewGoAllocator(), sc)
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"xa", "yb", "xa", "zc"}, nil)
	tree := store.NewMemory(nil)
	w, err := carbon.Format.Create(t.Context(), tree.Sink("x.carbondata"), sc, format.WriteOptions{Rows: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole := tree.Bytes("x.carbondata")
	codes := []byte{0, 0, 2, 0, 0, 3, 0, 0, 2, 0, 0, 4} // unchanged, after Snappy's length
	at := bytes.Index(whole, codes)
	if at < 0 || bytes.Count(whole, codes) != 1 {
		t.Fatalf("no codes at the expected offset: %x", whole)
	}
	for code, bad := range map[byte]bool{4: false, 3: false, 0: true, 5: true, 9: true, 255: true} {
		file := bytes.Clone(whole)
		file[at+11] = code
		mem := store.NewMemory(map[string][]byte{"x.carbondata": file})
		var errs []region.Finding
		for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: mem, Name: "x.carbondata"},
			format.OpenOptions{}) {
			if f.Severity == region.Error {
				errs = append(errs, f)
			}
		}
		reported := slices.ContainsFunc(errs, func(f region.Finding) bool {
			return f.Code == "carbon.page.damaged" && strings.Contains(f.Message, "is not in the dictionary") &&
				f.At.Object == "x.carbondata" && f.At.Len > 0 && f.Column == "s" && f.Rows == [2]int64{0, 4}
		})
		if reported != bad || !bad && len(errs) > 0 {
			t.Errorf("code %d: got %+v", code, errs)
		}
		if _, _, err := read(t, "x.carbondata", stoa.OpenOptions{Formats: formats, Tree: mem},
			stoa.ScanSpec{}); (err != nil) != bad {
			t.Errorf("code %d: reading: got %v", code, err)
		}
	}
}

// TestGlobalCodesOutOfRange replaces all files of a dictionary by those of another column with fewer values.
func TestGlobalCodesOutOfRange(t *testing.T) {
	g := goldenTables(t).Tables[1]
	files := goldenFiles(t, g.Table)
	const small, large = "000000000004", "000000000000"
	for name, b := range goldenFiles(t, g.Table) {
		if strings.Contains(name, "-"+large+"_") {
			delete(files, name)
		}
		if strings.Contains(name, "-"+small) {
			files[strings.Replace(name, small, large, 1)] = b
		}
	}
	var errs []region.Finding
	o := memory(files, g)
	for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: o.Tree, Name: "t"},
		format.OpenOptions{Opts: o.Opts}) {
		if f.Severity == region.Error {
			errs = append(errs, f)
		}
	}
	if len(errs) == 0 {
		t.Fatal("expected findings, found none")
	}
	for _, f := range errs {
		if f.Code != "carbon.page.damaged" || !strings.Contains(f.Message, "expected a code from 1 to") ||
			f.At.Len == 0 || f.Column != "country" || f.Rows[1] <= f.Rows[0] {
			t.Errorf("%+v", f)
		}
	}
}

// TestSortIndexOutOfRange: a sort index that lists a code that the dictionary does not have, and one that has a
// rank for it.
func TestSortIndexOutOfRange(t *testing.T) {
	g := goldenTables(t).Tables[1]
	files := goldenFiles(t, g.Table)
	name := ending(t, files, "0004_21.sortindex")
	whole := files[name]
	for at := range whole {
		if v := whole[at]; v == 0 || v > 6 || v%2 > 0 { // not a small zigzag number
			continue
		}
		b := bytes.Clone(whole)
		b[at] = 120
		bad := without(files)
		bad[name] = b
		o := memory(bad, g)
		reported := false
		for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: o.Tree, Name: "t"},
			format.OpenOptions{Opts: o.Opts}) {
			reported = reported || f.Severity >= region.Warning && strings.HasPrefix(f.Code, "carbon.sortindex.") &&
				f.At.Object == name
		}
		if !reported {
			t.Errorf("byte %d: %x: got no findings, want some", at, b)
		}
	}
}
