package parquet_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// TestPagesWithoutSurvivorsAreNotRead: a scan with a filter that few rows pass does not read pages of other columns
// without such rows. Statistics exclude no rows, as the filter's column has the same values in every page.
func TestPagesWithoutSurvivorsAreNotRead(t *testing.T) {
	ctx := context.Background()
	const rows, batch, period = 4000, 100, 997 // the filter passes one row in 997
	path := filepath.Join(t.TempDir(), "t.parquet")
	writePaged(t, path, rows, batch, period)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mem := store.NewMemory(map[string][]byte{"t": whole})
	r, err := parquet.Format.Open(ctx, format.Target{Tree: mem, Name: "t"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	damaged, kept := 0, 0
	for part, err := range r.Parts(ctx, format.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		groups, err := r.RowGroups(ctx, part, format.Query{})
		if err != nil {
			t.Fatal(err)
		}
		base := int64(0)
		for _, g := range groups {
			for _, column := range []int{1, 2} {
				chunk, err := r.Chunk(ctx, g, column, vec.Range{To: g.Rows})
				if err != nil {
					t.Fatal(err)
				}
				for {
					p, err := chunk.Next(ctx)
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					if from := base + p.First; (from+period-1)/period*period < from+p.Rows {
						kept++
						continue
					}
					damaged++
					for i := range whole[p.Spans[0].Off:p.Spans[0].End()] {
						whole[p.Spans[0].Off+int64(i)] = 0xAA
					}
				}
			}
			base += g.Rows
		}
	}
	if damaged < 20 || kept < 8 {
		t.Fatalf("got %d pages damaged, %d kept, want some of each", damaged, kept)
	}
	if err := os.WriteFile(path, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	table, err := stoa.Open(ctx, path, stoa.OpenOptions{Formats: []format.Format{parquet.Format}})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	where, err := pred.Parse("k = 0")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for b, err := range table.Scan(ctx, stoa.ScanSpec{Filter: where}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			got = append(got, b.Column(1).ValueStr(i)+" "+b.Column(2).ValueStr(i))
		}
	}
	for i := 0; i < rows; i += period {
		want = append(want, fmt.Sprintf("text %d [%d,%d]", i, i, i+1))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, err = range table.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			break
		}
	}
	if err == nil {
		t.Error("without a filter: got no error from the damaged pages, want one")
	}
}

// TestBatchesOfLongStringsAreCut: rows of one long string in a dictionary are divided into several batches.
func TestBatchesOfLongStringsAreCut(t *testing.T) {
	ctx := context.Background()
	const rows, width, most = 4000, 60_000, 3 * 64 << 20
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String}}, nil)
	mem := store.NewMemory(nil)
	w, err := parquet.Format.Create(ctx, mem.Sink("t"), sc,
		format.WriteOptions{Rows: -1, Opts: map[string]string{"compression": "zstd"}})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for range rows {
		b.Field(0).(*array.StringBuilder).Append(strings.Repeat("x", width))
	}
	if err := w.Write(ctx, b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	table, err := stoa.Open(ctx, "t", stoa.OpenOptions{Tree: mem, Formats: []format.Format{parquet.Format}})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	n := int64(0)
	for b, err := range table.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		if b.NumRows()*width > most {
			t.Errorf("got a batch of %d bytes", b.NumRows()*width)
		}
		n += b.NumRows()
	}
	if n != rows {
		t.Errorf("got %d rows, want %d", n, rows)
	}
}

// writePaged writes rows k = i mod period, a = "text i", l = [i, i+1], one page for each batch.
func writePaged(t *testing.T, path string, rows, batch, period int) {
	ctx := context.Background()
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "a", Type: arrow.BinaryTypes.String},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)}}, nil)
	mem := store.NewMemory(nil)
	w, err := parquet.Format.Create(ctx, mem.Sink("t"), sc,
		format.WriteOptions{Rows: -1, Opts: map[string]string{"page-size": "200", "row-group-rows": "1000",
			"compression": "none"}})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	defer b.Release()
	for from := 0; from < rows; from += batch {
		for i := from; i < from+batch; i++ {
			b.Field(0).(*array.Int64Builder).Append(int64(i % period))
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("text ", i))
			l := b.Field(2).(*array.ListBuilder)
			l.Append(true)
			l.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{int32(i), int32(i + 1)}, nil)
		}
		rec := b.NewRecordBatch()
		if err := w.Write(ctx, rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, mem.Bytes("t"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestBatchesWithinMemory: in a scan with a budget no batch exceeds its share, and all rows are returned.
func TestBatchesWithinMemory(t *testing.T) {
	ctx := context.Background()
	const rows, width, budget = 20_000, 1000, 4 << 20
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String}}, nil)
	mem := store.NewMemory(nil)
	w, err := parquet.Format.Create(ctx, mem.Sink("t"), sc,
		format.WriteOptions{Rows: -1, Opts: map[string]string{"dictionary": "false"}})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for i := range rows {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("%0*d", width, i))
	}
	if err := w.Write(ctx, b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(path, mem.Bytes("t"), 0o644); err != nil {
		t.Fatal(err)
	}
	table, err := stoa.Open(ctx, path, stoa.OpenOptions{Formats: []format.Format{parquet.Format}})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for _, filter := range []string{"", "a is not null"} {
		spec, next := stoa.ScanSpec{Memory: budget}, 0
		if filter != "" {
			if spec.Filter, err = pred.Parse(filter); err != nil {
				t.Fatal(err)
			}
		}
		for b, err := range table.Scan(ctx, spec) {
			if err != nil {
				t.Fatal(err)
			}
			if b.NumRows()*width > budget/2 {
				t.Fatalf("got a batch of %d rows of %d bytes with a budget of %d", b.NumRows(), width, budget)
			}
			for i := range int(b.NumRows()) {
				if want := fmt.Sprintf("%0*d", width, next); b.Column(0).(*array.String).Value(i) != want {
					t.Fatalf("row %d: got a wrong value", next)
				}
				next++
			}
		}
		if next != rows {
			t.Errorf("got %d rows", next)
		}
	}
}
