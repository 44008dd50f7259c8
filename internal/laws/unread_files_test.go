package laws_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// severalFiles writes a table k (int64), f (utf8) of 6 rows, named t, that is a directory of files of one format.
func severalFiles(t *testing.T, to string, first int64) map[string][]byte {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "f", Type: arrow.BinaryTypes.String}}, nil)
	opts := map[string]map[string]string{"redfile": {"split": "row-group", "row-group-rows": "2"}}[to]
	m := store.NewMemory(nil)
	w, err := stoa.Create(t.Context(), "t", sc, stoa.CreateOptions{To: to, Sink: m.Sink("t"), Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer rb.Release()
	for i := first; i < first+6; i++ {
		rb.Field(0).(*array.Int64Builder).Append(i)
		rb.Field(1).(*array.StringBuilder).Append(fmt.Sprint("s", i))
	}
	b := rb.NewRecordBatch()
	defer b.Release()
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range m.Names() {
		files[name] = m.Bytes(name)
	}
	return files
}

// errorsOf returns the errors that opening, recovering and verifying the table t report.
func errorsOf(t *testing.T, files map[string][]byte) (opened, recovered, verified []region.Finding) {
	t.Helper()
	isError := func(f region.Finding) bool { return f.Severity == region.Error }
	read := func(o stoa.OpenOptions) (out []region.Finding) {
		o.Tree = store.NewMemory(files)
		tab, err := stoa.Open(t.Context(), "t", o)
		if err != nil {
			return nil
		}
		defer tab.Close()
		return slices.DeleteFunc(tab.Findings(), func(f region.Finding) bool { return !isError(f) })
	}
	for f, err := range stoa.Verify(t.Context(), "t", stoa.OpenOptions{Tree: store.NewMemory(files)}) {
		if err != nil {
			t.Fatal(err)
		}
		if isError(f) {
			verified = append(verified, f)
		}
	}
	return read(stoa.OpenOptions{}), read(stoa.OpenOptions{Recover: true}), verified
}

// TestFilesOfAnotherTableAreTold: if files of a second table are in the directory of a table of the same format,
// opening, recovery and verification each name every one of them as an error. Files that are not data are no error.
func TestFilesOfAnotherTableAreTold(t *testing.T) {
	for to, rename := range map[string]func(base string) string{
		"cfile":   func(base string) string { return "z" + base },
		"redfile": func(base string) string { return fmt.Sprintf("part-%05d.red", base[len("part-0000")]-'0'+3) },
	} {
		files := severalFiles(t, to, 0)
		for _, name := range []string{"README.md", "_SUCCESS", "notes.txt"} {
			files["t/"+name] = []byte("not data")
		}
		other := severalFiles(t, to, 100)
		files["t/.hidden"] = other[slices.Sorted(maps.Keys(other))[1]]
		if a, b, c := errorsOf(t, files); len(a)+len(b)+len(c) > 0 {
			t.Errorf("%s with files that are not data: %v, %v, %v", to, a, b, c)
		}
		var want []string
		for name, data := range other {
			base := path.Base(name)
			if base == "table.json" || base == "_metadata.red" {
				continue
			}
			files["t/"+rename(base)] = data
			want = append(want, "t/"+rename(base))
		}
		files["t/renamed"] = other[slices.Sorted(maps.Keys(other))[1]]
		want = append(want, "t/renamed")
		slices.Sort(want)
		opened, recovered, verified := errorsOf(t, files)
		for verb, found := range map[string][]region.Finding{"open": opened, "recover": recovered, "verify": verified} {
			var told []string
			for _, f := range found {
				told = append(told, f.At.Object)
			}
			if slices.Sort(told); !slices.Equal(told, want) {
				t.Errorf("%s: %s names %v, expected %v", to, verb, told, want)
			}
		}
	}
}

// TestColumnsThatAreGoneAreNamed: wherever a table.json is cut, and whether the file of a column is gone or is a copy
// of another column's, recovery returns the column or names it as lost. If the file is gone, it can do so while the
// schema is left.
func TestColumnsThatAreGoneAreNamed(t *testing.T) {
	whole := severalFiles(t, "cfile", 0)
	all := len(whole["t/table.json"])
	schemaEnds := strings.Index(string(whole["t/table.json"]), `"rows"`)
	for _, kept := range []int{0, 30, 100, schemaEnds / 2, schemaEnds, schemaEnds + 60, all - 9} {
		for _, copied := range []bool{true, false} {
			files := maps.Clone(whole)
			files["t/table.json"] = files["t/table.json"][:kept]
			if delete(files, "t/f.cfile"); copied {
				files["t/f.cfile"] = files["t/k.cfile"]
			}
			tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: store.NewMemory(files), From: "cfile",
				Recover: true})
			if err != nil {
				t.Errorf("cut at %d, copied %v: %v", kept, copied, err)
				continue
			}
			named := slices.ContainsFunc(tab.Findings(), func(f region.Finding) bool {
				return f.Severity == region.Error && f.Column == "f" && f.Gone && f.Lost == 6 &&
					f.Rows == [2]int64{0, 6}
			})
			if has := tab.Schema().HasField("f"); has || !named && (copied || kept >= schemaEnds) {
				t.Errorf("cut at %d, copied %v: column f is there: %v, named: %v: %v", kept, copied, has, named,
					tab.Findings())
			}
			tab.Close()
		}
	}
}
