package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/ipc/sample"
)

// typesOfSources are the types of columns that a source may have.
func typesOfSources() []arrow.DataType {
	dict := func(values arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: values}
	}
	text := dict(arrow.BinaryTypes.String)
	own := []arrow.DataType{text, dict(arrow.BinaryTypes.Binary),
		arrow.ListOf(text), arrow.MapOf(arrow.BinaryTypes.String, text),
		arrow.StructOf(arrow.Field{Name: "s", Type: text, Nullable: true})}
	all := slices.Concat(own, sample.Nested(), sample.NestedRare(), sample.Scalars(), sample.Rare())
	if testing.Short() {
		return all[:8]
	}
	return all
}

// TestCatchUpTakesWhatConvertWrites: a table of a lake catches up with a source of every type of which convert writes
// one, and then has the rows that convert writes; what convert refuses, catching up refuses. --dry-run tells the same
// changes before, or the same error.
func TestCatchUpTakesWhatConvertWrites(t *testing.T) {
	t.Chdir(t.TempDir())
	written, refused := 0, 0
	for i, typ := range typesOfSources() {
		sc := arrow.NewSchema([]arrow.Field{{Name: "it", Type: typ, Nullable: true}}, nil)
		r := rand.New(rand.NewPCG(25, uint64(i)))
		old, now := fmt.Sprintf("%d-old.arrow", i), fmt.Sprintf("%d-now.arrow", i)
		for _, name := range []string{old, now} {
			b := sample.Batch(r, sc, 30, 0.2)
			put(t, name, b)
			b.Release()
		}
		empty := sample.Batch(r, sc, 0, 0)
		put(t, "empty.arrow", empty)
		empty.Release()
		for _, to := range []string{"iceberg", "delta"} {
			for _, from := range []string{old, "empty.arrow"} {
				lake, fresh := fmt.Sprintf("%s-%d-%s", to, i, from), fmt.Sprintf("%s-%d-fresh-%s", to, i, from)
				if got := said("nowhere", "convert", from, "--to", to, "-o", lake, "-q"); strings.HasSuffix(got,
					"status: 1") {
					continue // there is no such table to go on with
				}
				want := said("nowhere", "convert", now, "--to", to, "-o", fresh, "-q")
				took := foretold(t, now, lake)
				if wrote := !strings.HasSuffix(want, "status: 1"); took != wrote {
					t.Errorf("%s into %s: convert wrote: %t, catching up did: %t: %s", typ, to, wrote, took, want)
				} else if took {
					written++
					if a, b := sortedRows(t, lake), sortedRows(t, fresh); !slices.Equal(a, b) {
						t.Errorf("%s into %s: got %q, want %q", typ, to, a, b)
					}
				} else {
					refused++
				}
			}
		}
	}
	if written == 0 || refused == 0 && !testing.Short() {
		t.Errorf("%d tables caught up, and %d were refused", written, refused)
	}
}

// sortedRows returns the rows of a table as text, in an order of their own.
func sortedRows(t *testing.T, args ...string) []string {
	t.Helper()
	text := do(t, append([]string{"cat", "-f", "jsonl"}, args...)...)
	rows := strings.Split(strings.ReplaceAll(text, "-0.0", "0"), "\n") // which are the same value
	slices.Sort(rows)
	return rows
}

// foretold has a table catch up with a source, and reports whether it did. --dry-run must have told the same before:
// the changes, the findings, the error, the status.
func foretold(t *testing.T, source, lake string) bool {
	t.Helper()
	before := sizesBelow(t, lake)
	dry := said("nowhere", "convert", "--catch-up", source, "-o", lake, "-f", "json", "--dry-run")
	if after := sizesBelow(t, lake); !slices.Equal(before, after) {
		t.Errorf("%s: --dry-run has changed files: %q, before %q", lake, after, before)
	}
	real := said("nowhere", "convert", "--catch-up", source, "-o", lake, "-f", "json")
	if a, b := changesTold(t, dry), changesTold(t, real); a != b {
		t.Errorf("%s into %s: --dry-run said %s\nthe run %s", source, lake, dry, real)
	}
	return !strings.HasSuffix(real, "status: 1")
}

// changesTold returns what a run that caught up has said of rows, findings and errors.
func changesTold(t *testing.T, text string) string {
	t.Helper()
	out, rest, _ := strings.Cut(text, "\nstderr:\n")
	var doc struct{ Rows, Added, Deleted int64 }
	if out != "" {
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err, text)
		}
	}
	return fmt.Sprint(doc, rest)
}

// sizesBelow returns the files of a directory with their sizes.
func sizesBelow(t *testing.T, dir string) (out []string) {
	t.Helper()
	for _, name := range keysOf(t, dir) {
		st, err := os.Stat(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(name, " ", st.Size()))
	}
	return out
}

// TestDryRunForetellsValues: --dry-run foretells what becomes of values that a lake does not hold as they are: strings
// that are not UTF-8, and values that no partition can have, by each catalogue.
func TestDryRunForetellsValues(t *testing.T) {
	t.Chdir(t.TempDir())
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8,
			ValueType: arrow.BinaryTypes.String}, Nullable: true}}, nil)
	put1 := func(name, s string, n int32, d string) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		defer b.Release()
		b.Field(0).(*array.StringBuilder).Append(s)
		b.Field(1).(*array.Int32Builder).Append(n)
		if err := b.Field(2).(*array.BinaryDictionaryBuilder).AppendString(d); err != nil {
			t.Fatal(err)
		}
		rec := b.NewRecordBatch()
		defer rec.Release()
		put(t, name, rec)
	}
	put1("start.arrow", "a", 1, "b")
	put1("text.arrow", "\xff", 1, "b")
	put1("code.arrow", "a", 1, "\xfe")
	put1("least.arrow", "a", -1<<31, "b")
	put1("fine.arrow", "é", 7, "ü")
	for _, o := range [][]string{{"--to", "iceberg"}, {"--to", "delta"}, {"--to", "iceberg,delta"},
		{"--to", "iceberg", "--partition-by", "truncate(10, n)"}, {"--to", "delta", "--partition-by", "s"}} {
		for _, now := range []string{"text", "code", "least", "fine"} {
			lake := strings.Join(o, " ") + " " + now
			do(t, append([]string{"convert", "start.arrow", "-o", lake, "-q"}, o...)...)
			took := foretold(t, now+".arrow", lake)
			if refused := now == "least" && len(o) > 2 && strings.Contains(o[3], "truncate"); took == refused {
				t.Errorf("%s: caught up: %t", lake, took)
			}
		}
	}
}
