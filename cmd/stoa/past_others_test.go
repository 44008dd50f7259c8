package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
)

// put writes one batch as an Arrow file.
func put(t *testing.T, name string, b arrow.RecordBatch) {
	t.Helper()
	w, err := stoa.Create(t.Context(), name, b.Schema(), stoa.CreateOptions{})
	if err == nil {
		err = w.Write(t.Context(), b)
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(name, err)
	}
}

// typeIn returns the type of the first column of a table.
func typeIn(t *testing.T, name string) string {
	t.Helper()
	table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{Formats: catalogue.Formats()})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	return table.Schema().Field(0).Type.String()
}

// sourceTypes are types of a column, each of which a table may have got in place of any other.
func sourceTypes() map[string]arrow.DataType {
	return map[string]arrow.DataType{"bool": arrow.FixedWidthTypes.Boolean, "int16": arrow.PrimitiveTypes.Int16,
		"int": arrow.PrimitiveTypes.Int32, "long": arrow.PrimitiveTypes.Int64, "uint32": arrow.PrimitiveTypes.Uint32,
		"float": arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64,
		"date":        arrow.FixedWidthTypes.Date32,
		"timestamp":   &arrow.TimestampType{Unit: arrow.Microsecond},
		"timestamptz": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
		"string":      arrow.BinaryTypes.String, "binary": arrow.BinaryTypes.Binary,
		"decimal92":  &arrow.Decimal128Type{Precision: 9, Scale: 2},
		"decimal93":  &arrow.Decimal128Type{Precision: 9, Scale: 3},
		"decimal182": &arrow.Decimal128Type{Precision: 18, Scale: 2},
		"ints":       arrow.ListOf(arrow.PrimitiveTypes.Int32), "longs": arrow.ListOf(arrow.PrimitiveTypes.Int64),
		"a":   arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}),
		"b":   arrow.StructOf(arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int32, Nullable: true}),
		"map": arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)}
}

// promotions are the pairs of sourceTypes of which both formats read values of the first in a column of the second.
// Delta stores int16 as it is, and Iceberg as int; both store uint32 as long.
var promotions = []string{"int16 int", "int16 long", "int16 uint32", "int long", "int uint32", "float double",
	"decimal92 decimal182", "ints longs"}

// TestCatchUpOfTypes: where a column of the source has got another type, catching up is refused with its name and both
// types, unless the type of the table's column is the one as which it is stored, or the format promotes that to it,
// or it is a column of Iceberg that is promoted to the new type.
func TestCatchUpOfTypes(t *testing.T) {
	t.Chdir(t.TempDir())
	types, names := sourceTypes(), []string(nil)
	for name, typ := range types {
		names = append(names, name)
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "it", Type: typ,
			Nullable: true}, {Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil))
		b.Field(0).AppendEmptyValue()
		b.Field(0).AppendNull()
		b.Field(1).(*array.Int64Builder).AppendValues([]int64{1, 2}, nil)
		rec := b.NewRecordBatch()
		put(t, name+".arrow", rec)
		rec.Release()
		b.Release()
	}
	slices.Sort(names)
	if testing.Short() {
		names = []string{"date", "int", "long", "timestamp", "timestamptz", "string", "binary"}
	}
	taken, refused := 0, 0
	for _, to := range []string{"iceberg", "delta"} {
		stored := map[string]string{}
		for _, name := range names {
			do(t, "convert", name+".arrow", "--to", to, "-o", to+"-"+name, "-q")
			stored[name] = typeIn(t, to+"-"+name)
		}
		for _, was := range names {
			for _, now := range names {
				lake := "lake-" + to
				if err := os.CopyFS(lake, os.DirFS(to+"-"+was)); err != nil {
					t.Fatal(err)
				}
				got := said("nowhere", "convert", "--catch-up", now+".arrow", "-o", lake)
				legal := stored[now] == stored[was] || slices.Contains(promotions, now+" "+was)
				if to == "iceberg" {
					legal = legal || slices.Contains(promotions, was+" "+now)
				}
				switch {
				case legal && !strings.HasSuffix(got, "status: 0"):
					t.Errorf("%s: %s into %s: %s", to, now, was, got)
				case !legal && !(strings.HasSuffix(got, "status: 2") && strings.Contains(got, "column it is of type "+
					types[now].String()+" in the source and of type "+stored[was]+" in the table")):
					t.Errorf("%s: %s into %s is not refused: %s", to, now, was, got)
				case legal:
					taken++
				default:
					refused++
				}
				if err := os.RemoveAll(lake); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if taken == 0 || refused == 0 {
		t.Errorf("%d pairs were taken and %d refused", taken, refused)
	}
}

// TestCatchUpOfInvalidStrings: strings that are not UTF-8 come into a lake as convert writes them, and are told with
// the same finding and status; catching up with a source that has not changed changes nothing. So does its history.
func TestCatchUpOfInvalidStrings(t *testing.T) {
	texts := []string{"first", "not \xff UTF-8", "fine", "\xc3\x28", "", "a\xe2\x82", "é"}
	source := func(name string, n int) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
			{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
			{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}}, nil))
		defer b.Release()
		for _, s := range texts[:n] {
			b.Field(0).(*array.StringBuilder).Append(s)
			b.Field(1).(*array.ListBuilder).Append(true)
			b.Field(1).(*array.ListBuilder).ValueBuilder().(*array.StringBuilder).Append(s)
		}
		rec := b.NewRecordBatch()
		defer rec.Release()
		put(t, name, rec)
	}
	for _, to := range []string{"iceberg", "delta", "iceberg,delta"} {
		t.Run(to, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for n := range len(texts) + 1 {
				source(fmt.Sprintf("%d.parquet", n), n)
			}
			whole := said("nowhere", "convert", "7.parquet", "--to", to, "-o", "whole", "-q")
			if !strings.HasSuffix(whole, "status: 3") || !strings.Contains(whole, "output.values.utf8") {
				t.Fatal(whole)
			}
			do(t, "convert", "0.parquet", "--to", to, "-o", "lake", "-q")
			for n := 1; n <= len(texts); n++ {
				args := []string{"convert", "--catch-up", fmt.Sprintf("%d.parquet", n), "-o", "lake", "-q"}
				got, valid := said("nowhere", args...), strings.ToValidUTF8(texts[n-1], "") == texts[n-1]
				if told := strings.Contains(got, "output.values.utf8"); told == valid ||
					strings.HasSuffix(got, "status: 3") == valid {
					t.Errorf("%q: %s", texts[n-1], got)
				}
				if got := do(t, slices.Replace(args, 5, 6, "-f", "json")...); !unchanged(t, got) {
					t.Errorf("%d: the second run changes something: %s", n, got)
				}
			}
			for _, from := range strings.Split(to, ",") {
				want := do(t, "cat", "-f", "jsonl", "whole", "--from", from)
				if got := do(t, "cat", "-f", "jsonl", "lake", "--from", from); got != want {
					t.Errorf("%s: got %s, want %s", from, got, want)
				}
			}
		})
	}
}

// unchanged reports whether a run that caught up has changed nothing.
func unchanged(t *testing.T, report string) bool {
	t.Helper()
	var doc struct{ Rows, Added, Deleted, Files int64 }
	if err := json.Unmarshal([]byte(report), &doc); err != nil {
		t.Fatal(err, report)
	}
	return doc.Added+doc.Deleted+doc.Files == 0 && doc.Rows > 0
}

// edit changes a file.
func edit(t *testing.T, name string, change func(string) string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, []byte(change(string(b))), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCatchUpAfterOthers: where others have changed rows of a table since stoa did, catching up is refused by each
// catalogue, changes nothing, and is no remedy that a message names. Where they have only rearranged files, it works.
func TestCatchUpAfterOthers(t *testing.T) {
	// A later version by stoa becomes one by others, as their tools mark them.
	for to, others := range map[string]struct{ file, name, by string }{
		"delta":   {"_delta_log/00000000000000000001.json", `"engineInfo":"stoa"`, `"engineInfo":"delta-rs:py-1.6.6"`},
		"iceberg": {"metadata/v2.metadata.json", `"engine-name": "stoa"`, `"engine-name": "spark"`}} {
		t.Run(to, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "one.jsonl", "{\"id\":1}\n")
			write(t, "two.jsonl", "{\"id\":1}\n{\"id\":2}\n")
			do(t, "convert", "one.jsonl", "--to", to, "-o", "lake", "-q")
			do(t, "convert", "--catch-up", "two.jsonl", "-o", "lake", "-q")
			edit(t, filepath.Join("lake", others.file), func(s string) string {
				at := strings.LastIndex(s, others.name)
				return s[:at] + others.by + s[at+len(others.name):]
			})
			before := treeOf(t, "lake")
			for _, args := range [][]string{{}, {"--dry-run"}, {"--to", to}} {
				got := said("nowhere", append([]string{"convert", "--catch-up", "one.jsonl", "-o", "lake"}, args...)...)
				if !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, "others have changed rows") {
					t.Errorf("%v: %s", args, got)
				}
			}
			if after := treeOf(t, "lake"); !slices.Equal(after, before) {
				t.Errorf("a refused run has changed the table: %v, %v", before, after)
			}
			edit(t, filepath.Join("lake", others.file), func(s string) string { // they have only rearranged files
				s = strings.ReplaceAll(s, `"dataChange":true`, `"dataChange":false`)
				at := strings.LastIndex(s, `"operation": "append"`)
				if at < 0 {
					return s
				}
				return s[:at] + `"operation": "replace"` + s[at+len(`"operation": "append"`):]
			})
			do(t, "convert", "--catch-up", "one.jsonl", "-o", "lake", "-q")
			if got := do(t, "count", "lake"); got != "1\n" {
				t.Errorf("got %s rows, want 1", got)
			}
		})
	}
}

// treeOf returns the names and sizes of the files in a directory.
func treeOf(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			out = append(out, fmt.Sprint(name, " ", info.Size()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRemedies: the sentence that catching up brings a table up to date is there exactly where it does.
func TestRemedies(t *testing.T) {
	for _, to := range []string{"iceberg", "delta"} {
		t.Run(to, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.Mkdir("in", 0o777); err != nil {
				t.Fatal(err)
			}
			write(t, "in/one.jsonl", "{\"id\":1}\n")
			do(t, "migrate", "in", "--to", to, "-o", "out", "-q")
			write(t, "in/one.jsonl", "{\"id\":1}\n{\"id\":2}\n")
			lakes, err := filepath.Glob("out/one*")
			if err != nil || len(lakes) != 1 {
				t.Fatal(lakes, err)
			}
			const up = "stoa convert --catch-up in/one.jsonl -o "
			got := said("nowhere", "migrate", "in", "--to", to, "-o", "out", "--resume", "-q")
			if !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, up+lakes[0]+" brings it up to date") {
				t.Error(got)
			}
			do(t, "convert", "--catch-up", "in/one.jsonl", "-o", lakes[0], "-q")
			byOthers := strings.NewReplacer(`"engineInfo":"stoa"`, `"engineInfo":"other"`, `"engine-name": "stoa"`,
				`"engine-name": "other"`)
			for _, name := range []string{"_delta_log/00000000000000000001.json", "metadata/v2.metadata.json"} {
				if _, err := os.Stat(filepath.Join(lakes[0], name)); err == nil {
					edit(t, filepath.Join(lakes[0], name), byOthers.Replace)
				}
			}
			write(t, "in/one.jsonl", "{\"id\":3}\n")
			got = said("nowhere", "migrate", "in", "--to", to, "-o", "out", "--resume", "-q")
			if !strings.HasSuffix(got, "status: 1") || strings.Contains(got, "brings it up to date") ||
				!strings.Contains(got, "--catch-up does not bring it up to date") {
				t.Error(got)
			}
		})
	}
}

// TestCatchUpOfCheckpointAlone: a Delta table whose log has no version but a checkpoint is one of Delta. As it is not
// known whose the versions were, it is refused.
func TestCatchUpOfCheckpointAlone(t *testing.T) {
	from := os.DirFS(filepath.Join("..", "..", "format", "delta", "testdata", "spark-ids"))
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "lake"), from); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	versions, err := filepath.Glob("lake/_delta_log/*.json")
	if err != nil || len(versions) == 0 {
		t.Fatal(versions, err)
	}
	for _, name := range versions {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "one.jsonl", "{\"id\":1}\n")
	before := treeOf(t, "lake")
	got := said("nowhere", "convert", "--catch-up", "one.jsonl", "-o", "lake")
	if after := treeOf(t, "lake"); !strings.HasSuffix(got, "status: 1") || strings.Contains(got, "Iceberg") ||
		!strings.Contains(got, "_delta_log") || !slices.Equal(after, before) {
		t.Errorf("%s; before %v, after %v", got, before, after)
	}
}
