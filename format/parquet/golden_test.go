package parquet

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/cells"
	"stoa/store"
	"stoa/vec"
)

// golden opens a file that another implementation wrote (format/ipc/testdata/make.py).
func golden(t testing.TB, path string) *store.Memory {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return store.NewMemory(map[string][]byte{"t": b})
}

// compare compares the rows with the lines of a JSON file, column by column; differ are columns whose text is different
// without the stored Arrow schema.
func compare(t *testing.T, name, lines string, got []arrow.RecordBatch, differ map[string]bool) {
	t.Helper()
	want, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := cells.NewJSONLWriter(&b, got[0].Schema())
	for _, g := range got {
		if err := w.Write(g); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	ours, theirs := strings.Split(strings.TrimSpace(b.String()), "\n"),
		strings.Split(strings.TrimSpace(string(want)), "\n")
	if len(ours) != len(theirs) {
		t.Fatalf("%s: got %d rows, want %d", name, len(ours), len(theirs))
	}
	for i := range ours {
		x, y := object(t, ours[i]), object(t, theirs[i])
		for k := range y {
			if !differ[k] && !sameJSON(x[k], y[k]) {
				t.Fatalf("%s: row %d: %s: got %v, want %v", name, i, k, x[k], y[k])
			}
		}
	}
}

func object(t *testing.T, line string) (m map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// sameJSON compares integers digit by digit, and other numbers by value: 3.0 is 3.
func sameJSON(x, y any) bool {
	switch a := x.(type) {
	case json.Number:
		b, ok := y.(json.Number)
		if !ok || a == b || !strings.ContainsAny(string(a+b), ".e") {
			return ok && a == b
		}
		f, err1 := a.Float64()
		g, err2 := b.Float64()
		return err1 == nil && err2 == nil && f == g
	case []any:
		b, ok := y.([]any)
		return ok && slices.EqualFunc(a, b, sameJSON)
	case map[string]any:
		b, ok := y.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameJSON)
	}
	return x == y
}

// TestGoldenEncodings reads every type in every encoding and codec that pyarrow writes (testdata/make.py).
func TestGoldenEncodings(t *testing.T) {
	for lines, n := range map[string]int{"enc": 6, "codec": 7, "fixed": 7} {
		files, _ := filepath.Glob("testdata/" + lines + "-*.parquet")
		if len(files) != n {
			t.Errorf("got %d files of %s, want %d", len(files), lines, n)
		}
		for _, f := range files {
			_, got, err := readAll(golden(t, f), nil, vec.Range{})
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			compare(t, f, "testdata/"+lines+".jsonl", got, nil)
		}
	}
}

// TestUnknownCodec: a codec without a decoder costs its column, and is not reported as damage.
func TestUnknownCodec(t *testing.T) {
	r := openGolden(t, "testdata/fixed-snappy.v1.parquet")
	read := func(cols ...int) (err error) {
		for _, e := range batchesOf(t.Context(), r, format.RowGroup{}, format.Query{Cols: cols}, vec.Range{}, nil) {
			err = errors.Join(err, e)
		}
		return err
	}
	r.Footer.RowGroups[0].Columns[1].MetaData.Codec = 3
	if err := read(0); err != nil {
		t.Error(err)
	}
	if err := read(0, 1); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "codec LZO") {
		t.Error(err)
	}
}

func openGolden(t *testing.T, file string) *reader {
	t.Helper()
	r, err := openReader(t.Context(), format.Target{Tree: golden(t, file), Name: "t"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRangesOfRecodedChunks reads every range of rows, so that chunks that are rebuilt for the library begin and end at
// every page.
func TestRangesOfRecodedChunks(t *testing.T) {
	for _, file := range []string{"fixed-none.v1", "fixed-zstd.v2"} {
		r := openGolden(t, "testdata/"+file+".parquet")
		q := format.Query{Cols: []int{0, 1, 4, 5, 6}}
		read := func(rows vec.Range) (out []string) {
			for b, err := range batchesOf(t.Context(), r, format.RowGroup{}, q, rows, nil) {
				if err != nil {
					t.Fatal(file, rows, err)
				}
				for i := range int(b.NumRows()) {
					var row []string
					for _, c := range b.Columns() {
						row = append(row, c.ValueStr(i))
					}
					out = append(out, strings.Join(row, " "))
				}
			}
			return out
		}
		all := read(vec.Range{})
		for from := range int64(len(all)) {
			for _, n := range []int64{1, 7, 16, 33} {
				if to := from + n; to <= int64(len(all)) &&
					!slices.Equal(read(vec.Range{From: from, To: to}), all[from:to]) {
					t.Fatalf("%s: rows %d to %d: got wrong rows", file, from, to)
				}
			}
		}
	}
}

func TestGolden(t *testing.T) {
	bare := map[string]bool{"tu": true, "du": true, "ts": true} // without zone, a number, with a zone
	for pattern, lines := range map[string]string{"plain*": "plain", "rare*": "rare"} {
		files, _ := filepath.Glob("testdata/" + pattern)
		if len(files) == 0 {
			t.Fatal(pattern)
		}
		for _, f := range files {
			sc, got, err := readAll(golden(t, f), nil, vec.Range{})
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			differ := map[string]bool{}
			if strings.Contains(f, ".v2.") {
				differ = bare
			} else if lines == "rare" {
				for name, typ := range map[string]string{"du": "duration[ms]",
					"fl": "fixed_size_list<item: int8, nullable>[2]", "ls": "large_utf8", "d64": "date64",
					"t32": "time32[s]", "ts": "timestamp[s]",
					"dict": "dictionary<values=utf8, indices=int8, ordered=false>", "u64": "uint64"} {
					if fields, _ := sc.FieldsByName(name); len(fields) != 1 || fields[0].Type.String() != typ {
						t.Errorf("%s: %s is %v, want %s", f, name, fields, typ)
					}
				}
			}
			compare(t, f, "../ipc/testdata/"+lines+".jsonl", got, differ)
		}
	}
	_, got, err := readAll(golden(t, "testdata/int96.parquet"), nil, vec.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if a := got[0].Column(0); a.DataType().String() != "timestamp[ns]" ||
		a.ValueStr(1) != "1980-07-25T00:35:33.333333333" {
		t.Errorf("int96: %s %s", a.DataType(), a.ValueStr(1))
	}
}

func TestGoldenDamage(t *testing.T) {
	for _, f := range []string{"plain.v2.parquet", "rare.parquet"} {
		whole := golden(t, "testdata/"+f).Bytes("t")
		step := 17
		if testing.Short() {
			step = 101
		}
		for i := 0; i < len(whole); i += step {
			b := bytes.Clone(whole)
			b[i] ^= 0xFF
			damaged(t, f, i, b)
			damaged(t, f, i, whole[:i])
		}
	}
}
