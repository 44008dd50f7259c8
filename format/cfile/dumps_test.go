package cfile

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/internal/kudugen"
	"stoa/store"
	"stoa/vec"
)

// realBlock is an entry of the corpus's MANIFEST.json.
type realBlock struct {
	File, Dump, Kind string
	Schema           struct{ Type string }
	CFile            map[string]string
}

// realBlocks returns the files of the corpus; the test is skipped without STOA_CORPUS.
func realBlocks(t testing.TB) (dir string, blocks []realBlock) {
	dir = os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set")
	}
	dir = filepath.Join(dir, "kudu")
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &blocks); err != nil {
		t.Fatal(err)
	}
	return dir, blocks
}

// readColumn decodes all pages of a reader's column.
func readColumn(t testing.TB, r format.Reader, col int) *vec.Vector {
	t.Helper()
	ctx := context.Background()
	groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Chunk(ctx, groups[0], col, vec.Range{From: 0, To: 1 << 62})
	if err != nil {
		t.Fatal(err)
	}
	v, err := vec.New(r.Columns()[col].Type, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	task := format.Task{Scratch: &vec.Arena{}, Limits: format.Limits{}.WithDefaults()}
	decode := func(p format.Page, dst *vec.Vector) {
		t.Helper()
		if p.Lost != nil {
			t.Fatal(p.Lost)
		}
		src, err := store.Local{}.Open(ctx, p.Spans[0].Object)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		b := make([]byte, p.Spans[0].Len)
		if err := format.ReadFull(ctx, src, p.Spans[0], "", b); err != nil {
			t.Fatal(err)
		}
		task.Page, task.N, task.Bytes = p, p.Entries, [][]byte{b}
		before := dst.Len()
		if err := c.Decode(&task, dst); err != nil {
			t.Fatal(err)
		}
		if n := dst.Len() - before; p.Entries >= 0 && int64(n) != p.Entries {
			t.Fatalf("got %d entries, want %d", n, p.Entries)
		}
		task.Scratch.Reset()
	}
	if p, ok := c.Dict(); ok {
		d, err := vec.New(r.Columns()[col].Type, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		decode(p, d)
		task.Dict = d
	}
	for {
		p, err := c.Next(ctx)
		if err == io.EOF {
			return v
		}
		if err != nil {
			t.Fatal(err)
		}
		decode(p, v)
	}
}

// TestRealColumns compares every column file of the corpus with Kudu's own dump of it.
func TestRealColumns(t *testing.T) {
	dir, blocks := realBlocks(t)
	n, values := 0, 0
	for _, b := range blocks {
		if b.Kind != "column" || b.Dump == "" {
			continue
		}
		dump := readDump(t, filepath.Join(dir, b.Dump))
		r, err := open(context.Background(), format.Target{Tree: store.Local{}, Name: filepath.Join(dir, b.File)},
			format.OpenOptions{})
		if err != nil {
			t.Errorf("%s: %v", b.File, err)
			continue
		}
		v := readColumn(t, r, 0)
		compareDump(t, b, dump, r.(*table).files[0].Footer.Type, v)
		r.Close()
		n++
		values += v.Len()
	}
	t.Logf("%d files, %d values", n, values)
}

func readDump(t testing.TB, name string) kudugen.Dump {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	d, err := kudugen.ParseDump(text)
	if err != nil {
		t.Fatal(name, err)
	}
	return d
}

func compareDump(t *testing.T, b realBlock, dump kudugen.Dump, typ block.Type, v *vec.Vector) {
	t.Helper()
	if v.Len() != len(dump.Lines) {
		t.Errorf("%s: got %d values, Kudu's dump has %d", b.File, v.Len(), len(dump.Lines))
		return
	}
	if err := v.Plain(); err != nil {
		t.Fatal(err)
	}
	col := kudugen.Column{Type: typ.String()}
	if strings.HasPrefix(typ.String(), "decimal") {
		col.Type = "decimal"
		col.Precision = map[int]int{4: 9, 8: 18, 16: 38}[typ.Width()]
	}
	for i := range v.Len() {
		if cell := cellOf(v, i, typ); !dump.Agrees(i, col, cell) {
			t.Errorf("%s: value %d is %x, in Kudu's dump %s", b.File, i, cell, dump.Lines[i])
			return
		}
	}
}

// cellOf returns entry i as a cell of kudugen: little-endian, or the bytes; nil is null.
func cellOf(v *vec.Vector, i int, typ block.Type) kudugen.Cell {
	switch {
	case !v.Valid(i):
		return nil
	case typ == block.Bool:
		return kudugen.Bool(v.Bits()[i/8]>>(i%8)&1 != 0)
	case typ.IsBinary():
		o := v.Offsets(i)
		return append(kudugen.Cell{}, v.StringBytes()[o[0]:o[1]]...)
	}
	return append(kudugen.Cell{}, v.Data(i)[:typ.Width()]...)
}
