package carbon_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowMemory "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format/carbon"
	"stoa/format/formattest"
	"stoa/store"
)

// TestSort writes unordered rows of every shape and nesting, sorted in memory and in runs: they are read back in key
// order, and rows with equal keys in the order in which they were written.
func TestSort(t *testing.T) {
	tables := 0
	for _, g := range grid() {
		by := "id"
		switch g.name {
		case "flat_snappy_20_true":
			by = "str_few,date,bool"
		case "map_20", "list_struct_20", "struct_list_0":
		default:
			continue
		}
		for _, memory := range []string{"100000000", "100000"} {
			t.Run(g.name+"_"+memory, func(t *testing.T) {
				tables++
				in, want := shuffledGrid(g)
				slices.SortStableFunc(want, func(a, b line) int {
					if by == "id" {
						return cmp.Compare(whole(a["id"]), whole(b["id"]))
					}
					return cmp.Or(cmp.Compare(orNull(a["str_few"]), orNull(b["str_few"])),
						nullFirst(a["date"], b["date"]), nullFirst(a["bool"], b["bool"]))
				})
				out := filepath.Join(t.TempDir(), "t") + "/"
				opts := map[string]string{"sort-columns": by, "memory": memory, "page-rows": "500"}
				w, err := stoa.Create(t.Context(), out, in[0].Schema(),
					stoa.CreateOptions{Formats: formats, To: "carbon", Opts: opts, Rows: -1})
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range in {
					if err := w.Write(t.Context(), b); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := w.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				formattest.Sound(t, &carbon.Format, store.Local{}, strings.TrimSuffix(out, "/"))
				_, got, err := read(t, out, stoa.OpenOptions{}, stoa.ScanSpec{})
				if err != nil {
					t.Fatal(err)
				}
				if d := differ(got, want, false); d != "" {
					t.Error(d)
				}
			})
		}
	}
	if tables != 8 {
		t.Errorf("%d tables, want 8", tables)
	}
}

// shuffledGrid returns the rows of a table in random order, in batches that are slices, some of them with a dictionary.
func shuffledGrid(g gridTable) (in []arrow.RecordBatch, rows []line) {
	b := gridBatch(g)
	r := rand.New(rand.NewPCG(3, 4))
	for _, i := range r.Perm(int(b.NumRows()+36) / 37) {
		part := b.NewSlice(int64(37*i), min(int64(37*i+37), b.NumRows()))
		rows = append(rows, lines(part)...)
		in = append(in, withCodes(part))
	}
	return in, rows
}

// withCodes encodes the column str_few with a dictionary if it has strings.
func withCodes(b arrow.RecordBatch) arrow.RecordBatch {
	at := b.Schema().FieldIndices("str_few")[0]
	text, ok := b.Column(at).(*array.String)
	if !ok {
		return b
	}
	t := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	d := array.NewDictionaryBuilder(arrowMemory.DefaultAllocator, t).(*array.BinaryDictionaryBuilder)
	for i := range text.Len() {
		if text.IsNull(i) {
			d.AppendNull()
		} else if err := d.AppendString(text.Value(i)); err != nil {
			panic(err)
		}
	}
	fields, cols := b.Schema().Fields(), slices.Clone(b.Columns())
	fields[at].Type, cols[at] = t, d.NewArray()
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows())
}

func whole(s string) (n int) {
	fmt.Sscan(s, &n)
	return n
}

// orNull returns a text as CarbonData sorts it: null sorts as the text that stands for it.
func orNull(s string) string {
	if s == "null" {
		return "@NU#LL$!"
	}
	return strings.Trim(s, `"`)
}

func nullFirst(a, b string) int {
	if (a == "null") != (b == "null") {
		if a == "null" {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}
