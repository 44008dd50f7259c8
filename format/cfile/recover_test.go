package cfile_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/internal/kudugen"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// The cells that Recover must find come from the corpus, not from reading the undamaged file with our reader.

// forGoldenFiles calls f with every golden file of values, its layout and its cells.
func forGoldenFiles(t *testing.T, f func(t *testing.T, b block, data []byte, l *kudugen.Layout, x expected)) {
	n := 0
	for i, b := range readManifest(t, golden) {
		if b.Kind == "bloom" || b.Size > 200<<10 || testing.Short() && b.Kind == "column" && (i+len(t.Name()))%3 > 0 {
			continue // with -short each test uses a different third
		}
		data, err := os.ReadFile(filepath.Join(golden, b.File))
		if err != nil {
			t.Fatal(err)
		}
		l, err := kudugen.Walk(data)
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.expect(golden)
		if err != nil {
			t.Fatal(err)
		}
		if len(x.cells) == 0 {
			continue
		}
		t.Run(b.File, func(t *testing.T) { f(t, b, bytes.Clone(data), l, x) })
		n++
	}
	t.Logf("%d files", n)
}

// hit changes every byte of a block.
func hit(data []byte, b kudugen.Block) {
	for i := b.Off; i < b.Off+b.Len; i++ {
		data[i] ^= byte(i*7) | 1
	}
}

// footerOptions returns the properties in the footer as options.
func footerOptions(t *testing.T, l *kudugen.Layout) map[string]string {
	return map[string]string{
		"type":        cfile.Type(l.Type).String(),
		"encoding":    cfile.Encoding(l.Encoding).String(),
		"compression": cfile.Compression(l.Compression).String(),
		"nullable":    fmt.Sprint(l.Nullable),
		"checksums":   fmt.Sprint(l.Checksums),
		"kind":        "column",
	}
}

// salvage reads the cells that Recover finds, by row, and the rows of lost pages.
func salvage(t *testing.T, data []byte, opts map[string]string) (cells map[int64]kudugen.Cell, lost []vec.Range,
	rows int64) {
	t.Helper()
	ctx := context.Background()
	tree := store.NewMemory(map[string][]byte{"f": data})
	r, _, err := cfile.Format.Recover(ctx, format.Target{Tree: tree, Name: "f"}, format.OpenOptions{Opts: opts})
	if err != nil {
		t.Fatalf("Recover: %v", err)
	}
	defer r.Close()
	groups, err := r.RowGroups(ctx, format.Part{Ref: "f"}, format.Query{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Chunk(ctx, groups[0], 0, allRows)
	if err != nil {
		t.Fatal(err)
	}
	cells = map[int64]kudugen.Cell{}
	read := func(p format.Page, dict *vec.Vector) *vec.Vector {
		v, err := vec.New(r.Columns()[0].Type, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		task := format.Task{Page: p, N: p.Entries, Bytes: [][]byte{data[p.Spans[0].Off:p.Spans[0].End()]},
			Dict: dict, Scratch: &vec.Arena{}, Limits: format.Limits{}.WithDefaults()}
		if err := c.Decode(&task, v); err != nil {
			t.Fatalf("page %d: %v", p.Ordinal, err)
		}
		return v
	}
	var dict *vec.Vector
	if p, ok := c.Dict(); ok {
		dict = read(p, nil)
	}
	for {
		p, err := c.Next(ctx)
		if err == io.EOF {
			return cells, lost, groups[0].Rows
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Lost != nil {
			lost = append(lost, vec.Range{From: p.First, To: p.First + p.Rows})
			continue
		}
		first := p.First
		if first < 0 {
			first = int64(len(cells))
		}
		got, err := cellsOf(read(p, dict))
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range got {
			cells[first+int64(i)] = x
		}
	}
}

// checkOutside compares the cells that were salvaged with the expected ones, in the rows outside of gone.
func checkOutside(t *testing.T, cells map[int64]kudugen.Cell, x expected, gone vec.Range) {
	t.Helper()
	for i, want := range x.cells {
		if row := int64(i); row >= gone.From && row < gone.To {
			continue
		}
		got, ok := cells[int64(i)]
		if w := x.col.Width(); ok && got != nil && w > 0 {
			got = got[:w]
		}
		if !ok || !same(got, want) {
			t.Fatalf("row %d: %v (found: %v), want %v", i, got, ok, want)
		}
	}
}

// TestRecoverWithoutFooter: without its footer a whole file is recovered by means of the options.
func TestRecoverWithoutFooter(t *testing.T) {
	forGoldenFiles(t, func(t *testing.T, _ block, data []byte, l *kudugen.Layout, x expected) {
		foot := l.Blocks[len(l.Blocks)-1]
		cells, lost, rows := salvage(t, data[:foot.Off], footerOptions(t, l))
		if len(lost) > 0 || rows != int64(len(x.cells)) {
			t.Errorf("%d rows, lost %v", rows, lost)
		}
		checkOutside(t, cells, x, vec.Range{})
	})
}

// TestRecoverByType: it suffices to state the type; the other properties are guessed, or the error asks for them.
func TestRecoverByType(t *testing.T) {
	asked, n := 0, 0
	forGoldenFiles(t, func(t *testing.T, _ block, data []byte, l *kudugen.Layout, x expected) {
		if n++; n%6 != 0 && os.Getenv("STOA_LONG") == "" {
			t.Skip("every sixth file; STOA_LONG=1 takes all")
		}
		data = data[:l.Blocks[len(l.Blocks)-1].Off]
		opts := footerOptions(t, l)
		delete(opts, "encoding")
		delete(opts, "compression")
		delete(opts, "nullable")
		_, found, err := cfile.Format.Recover(context.Background(),
			format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"},
			format.OpenOptions{Opts: opts})
		if err != nil && (!l.Checksums || strings.Contains(err.Error(), "pass the right options")) {
			asked++
			return
		}
		if !slices.ContainsFunc(found, func(f region.Finding) bool { return f.Code == "cfile.recovered.guessed" }) {
			t.Errorf("the guess is not reported: %v, %v", found, err)
		}
		cells, lost, rows := salvage(t, data, opts)
		if len(lost) > 0 || rows != int64(len(x.cells)) {
			t.Errorf("%d rows, lost %v", rows, lost)
		}
		checkOutside(t, cells, x, vec.Range{})
	})
	t.Logf("%d need more options", asked)
}

// TestRecoverWithoutIndex: with all index blocks overwritten, every row is found.
func TestRecoverWithoutIndex(t *testing.T) {
	forGoldenFiles(t, func(t *testing.T, _ block, data []byte, l *kudugen.Layout, x expected) {
		for _, b := range l.Blocks {
			if b.Kind == "posidx" || b.Kind == "validx" {
				hit(data, b)
			}
		}
		cells, lost, _ := salvage(t, data, map[string]string{"kind": "column"})
		if len(lost) > 0 {
			t.Errorf("lost %v", lost)
		}
		checkOutside(t, cells, x, vec.Range{})
	})
}

// TestRecoverEveryKind: for files of every kind, recovery returns the columns and all rows of the undamaged file. If a
// data block is overwritten as well, it returns all rows except those reported as lost.
func TestRecoverEveryKind(t *testing.T) {
	kinds := map[string]int{}
	forGoldenFiles(t, func(t *testing.T, b block, data []byte, l *kudugen.Layout, _ expected) {
		sc, want, _ := shown(t, data, false)
		var blocks []kudugen.Block
		for _, b := range l.Blocks {
			switch b.Kind {
			case "posidx", "validx":
				hit(data, b)
			case "data":
				blocks = append(blocks, b)
			}
		}
		kinds[b.Kind]++
		got, rows, lost := shown(t, data, true)
		if !got.Equal(sc) || !slices.Equal(rows, want) || len(lost) > 0 {
			t.Fatalf("%d rows of %v, lost %v; want %d of %v", len(rows), got, lost, len(want), sc)
		}
		if len(blocks) < 3 {
			return
		}
		gone := blocks[len(blocks)/2]
		hit(data, gone)
		got, rows, lost = shown(t, data, true)
		want = slices.Delete(slices.Clone(want), int(gone.First), int(gone.First+gone.Rows))
		if !got.Equal(sc) || !slices.Equal(rows, want) || len(lost) != 1 || !lost[0].Exact ||
			lost[0].Rows != [2]int64{gone.First, gone.First + gone.Rows} {
			t.Fatalf("%d rows of %v, lost %v; want %d of %v without %d:%d", len(rows), got, lost, len(want), sc,
				gone.First, gone.First+gone.Rows)
		}
	})
	if t.Log(kinds); len(kinds) < 3 {
		t.Error("not all kinds were tried")
	}
}

// shown returns the schema of a file, its rows as text, and the losses.
func shown(t *testing.T, file []byte, recovered bool) (sc *arrow.Schema, rows []string, lost []region.Loss) {
	t.Helper()
	ctx := context.Background()
	tab, err := stoa.Open(ctx, "f", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f": file}),
		Recover: recovered})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	spec := stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { lost = append(lost, l) }}
	for b, err := range tab.Scan(ctx, spec) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			var cells []string
			for _, c := range b.Columns() {
				cells = append(cells, c.ValueStr(i))
			}
			rows = append(rows, strings.Join(cells, "|"))
		}
	}
	return tab.Schema(), rows, lost
}

// TestRecoverAroundALostBlock: with the indexes and a data block overwritten, exactly that block's rows are lost.
func TestRecoverAroundALostBlock(t *testing.T) {
	forGoldenFiles(t, func(t *testing.T, _ block, data []byte, l *kudugen.Layout, x expected) {
		var blocks []kudugen.Block
		for _, b := range l.Blocks {
			switch b.Kind {
			case "posidx", "validx":
				hit(data, b)
			case "data":
				blocks = append(blocks, b)
			}
		}
		if len(blocks) < 3 {
			t.Skip("fewer than three data blocks")
		}
		b := blocks[len(blocks)/2]
		hit(data, b)
		gone := vec.Range{From: b.First, To: b.First + b.Rows}
		cells, lost, _ := salvage(t, data, map[string]string{"kind": "column"})
		if len(lost) != 1 || lost[0] != gone {
			t.Errorf("lost %v, want %v", lost, gone)
		}
		checkOutside(t, cells, x, gone)
	})
}
