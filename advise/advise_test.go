package advise

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"stoa"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/store"
)

// adviseRows returns a table whose columns are best written in different ways.
func adviseRows(n int) arrow.RecordBatch {
	rnd := rand.New(rand.NewPCG(1, 2))
	item := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	sc := arrow.NewSchema([]arrow.Field{{Name: "key", Type: arrow.PrimitiveTypes.Int64},
		{Name: "float", Type: arrow.PrimitiveTypes.Float64}, {Name: "word", Type: arrow.BinaryTypes.String},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "list", Type: item}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i) * 3)
		b.Field(1).(*array.Float64Builder).Append(float64(rnd.IntN(1e6)) / 64)
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("word %d", rnd.IntN(500)))
		if i%9 == 0 {
			b.Field(3).AppendNull()
		} else {
			b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("%x-%x", rnd.Uint64(), i))
		}
		l := b.Field(4).(*array.ListBuilder)
		l.Append(true)
		for range i % 4 {
			l.ValueBuilder().(*array.Int32Builder).Append(int32(rnd.IntN(100)))
		}
	}
	return b.NewRecordBatch()
}

// TestAdviceIsWhatConvertGives: converting with the advised options gives the promised sizes, per column and in total:
// to a hundredth if all rows were measured, to a twentieth for a sample of a quarter of them.
func TestAdviceIsWhatConvertGives(t *testing.T) {
	rows := adviseRows(60000)
	defer rows.Release()
	for _, to := range []string{"parquet", "trevni", "redfile"} {
		tree := store.NewMemory(nil)
		write := func(name string, opts map[string]string) {
			t.Helper()
			w, err := stoa.Create(t.Context(), name, rows.Schema(),
				stoa.CreateOptions{To: to, Opts: opts, Sink: tree.Sink(name)})
			if err == nil {
				err = w.Write(t.Context(), rows)
			}
			if err == nil {
				_, err = w.Close(t.Context())
			}
			if err != nil {
				t.Fatal(to, err)
			}
		}
		open := func(name string) *stoa.Table {
			t.Helper()
			src, err := stoa.Open(t.Context(), name, stoa.OpenOptions{Tree: tree})
			if err != nil {
				t.Fatal(to, err)
			}
			return src
		}
		write("src", map[string]map[string]string{"parquet": {"compression": "none"}}[to])
		src := open("src")
		defer src.Close()
		for _, sample := range []struct {
			rows    int64
			off     float64
			columns bool
		}{{0, 0.01, true}, {15000, 0.05, false}} {
			a, err := Of(t.Context(), src, Options{Rows: sample.rows})
			if err != nil {
				t.Fatal(to, err)
			}
			if len(a.Trials) < 2 || a.Stored() < a.Trials[0].Stored {
				t.Fatalf("%s: %+v", to, a)
			}
			for i, x := range a.Trials {
				name := fmt.Sprintf("out%d", i)
				write(name, x.Opts)
				out := open(name)
				got, _, err := out.ColumnSizes(t.Context())
				out.Close()
				if err != nil {
					t.Fatal(err)
				}
				sum := int64(0)
				for k, c := range got {
					sum += c.Stored
					if d := x.Columns[k]; sample.columns && (far(d.Stored, c.Stored, sample.off) ||
						d.Encoding != c.Encoding || d.Codec != c.Codec) {
						t.Errorf("%s, %v: promised %+v, is %+v", to, x.Opts, d, c)
					}
				}
				// the printed command converts with these options, and may not copy the pages unchanged
				as := stoa.CreateOptions{To: to, Opts: x.Opts}
				why, err := src.Copies(t.Context(), stoa.ScanSpec{}, "out."+to, as)
				if err != nil || why == "" {
					t.Errorf("%s, %v: pages would be copied (%v)", to, x.Opts, err)
				}
				if far(x.Stored, sum, sample.off) {
					t.Errorf("%s, %v, by %d rows: promised %d bytes, there are %d", to, x.Opts, a.Sampled,
						x.Stored, sum)
				}
			}
		}
	}
}

func far(a, b int64, off float64) bool {
	return float64(a) > float64(b)*(1+off) || float64(a) < float64(b)*(1-off)
}

// TestAdviceIsRefusedByName: formats without pages per column, and formats without compression, are refused by name.
func TestAdviceIsRefusedByName(t *testing.T) {
	tree := store.NewMemory(map[string][]byte{"a.csv": []byte("n\n1\n2\n")})
	src, err := stoa.Open(t.Context(), "a.csv", stoa.OpenOptions{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for to, want := range map[string]string{"": "the writer of csv has no compressions",
		"parquet": "each column of csv takes is unknown"} {
		_, err := Of(t.Context(), src, Options{To: to})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("to %q: %v, want %q", to, err, want)
		}
	}
}
