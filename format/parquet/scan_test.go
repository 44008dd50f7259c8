package parquet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// TestScansOfPyarrow scans files by pyarrow, with filters on columns and children of structs, and compares the rows
// with those of testdata/make.py, filtered by a Go function.
func TestScansOfPyarrow(t *testing.T) {
	b, err := os.ReadFile("testdata/enc.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	for line := range strings.Lines(string(b)) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	num := func(v any) float64 { f, _ := v.(float64); return f }
	child := func(v any, name string) any { m, _ := v.(map[string]any); return m[name] }
	cases := map[string]func(row map[string]any) bool{
		"full > 330":                  func(r map[string]any) bool { return num(r["full"]) > 330 },
		"full >= -100 and full < -40": func(r map[string]any) bool { return num(r["full"]) < -40 },
		"full = 1000000":              func(map[string]any) bool { return false },
		"s is null":                   func(r map[string]any) bool { return r["s"] == nil },
		"s like 'prefix-002%'": func(r map[string]any) bool {
			s,
				_ := r["s"].(string)
			return strings.HasPrefix(s, "prefix-002")
		},
		"st.x between 20 and 22": func(r map[string]any) bool {
			x := child(r["st"],
				"x")
			return x != nil && num(x) >= 20 && num(x) <= 22
		},
		"st.y.z = 'z12'": func(r map[string]any) bool {
			return child(child(r["st"], "y"),
				"z") == "z12"
		},
		"st.y.z is null and full < 0": func(r map[string]any) bool {
			return child(child(r["st"], "y"),
				"z") == nil && num(r["full"]) < 0
		},
		"u32 > 4294960000 and i8 is not null": func(r map[string]any) bool {
			return num(r["u32"]) > 4294960000 &&
				r["i8"] != nil
		},
		"f64 < -0.06": func(r map[string]any) bool {
			return r["f64"] != nil &&
				num(r["f64"]) < -0.06
		},
		"not (full < 340 or full > 345)": func(r map[string]any) bool {
			return num(r["full"]) >= 340 &&
				num(r["full"]) <= 345
		},
	}
	ctx := context.Background()
	for _, file := range []string{"enc-dict.v1", "enc-dict.v2", "enc-delta.v1", "enc-plain.v2"} {
		table, err := stoa.Open(ctx, "testdata/"+file+".parquet",
			stoa.OpenOptions{Formats: []format.Format{parquet.Format}})
		if err != nil {
			t.Fatal(err)
		}
		for where, keep := range cases {
			e, err := pred.Parse(where)
			if err != nil {
				t.Fatal(where, err)
			}
			var want, got []string
			for _, r := range rows {
				if keep(r) {
					j, _ := json.Marshal(map[string]any{"full": r["full"],
						"st.y.w": child(child(r["st"], "y"), "w"), "l": r["l"]})
					want = append(want, string(j))
				}
			}
			for b, err := range table.Scan(ctx, stoa.ScanSpec{Columns: []string{"full", "st.y.w", "l"}, Filter: e}) {
				if err != nil {
					t.Fatal(file, where, err)
				}
				text, err := b.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				var out []map[string]any
				if err := json.Unmarshal(text, &out); err != nil {
					t.Fatal(err)
				}
				for _, r := range out {
					j, _ := json.Marshal(r)
					got = append(got, string(j))
				}
			}
			if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
				t.Errorf("%s: %s: got %d rows, want %d\n%s\n%s", file, where, len(got), len(want), g, w)
			}
		}
		table.Close()
	}
}

// TestFilterReadsFewerPages: for one row of many a scan fetches only its pages and the indexes to find them.
func TestFilterReadsFewerPages(t *testing.T) {
	ctx := context.Background()
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "p", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64},
			arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int64})}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for i := range int64(400_000) {
		b.Field(0).(*array.Int64Builder).Append(i)
		p := b.Field(1).(*array.StructBuilder)
		p.Append(true)
		p.FieldBuilder(0).(*array.Int64Builder).Append(i * 7)
		p.FieldBuilder(1).(*array.Int64Builder).Append(-i)
	}
	var file bytes.Buffer
	w, err := parquet.NewWriter(&file, sc,
		map[string]string{"compression": "none", "dictionary": "false", "encoding": "plain",
			"row-group-rows": "200000", "page-size": "50000"})
	if err == nil {
		err = w.Write(b.NewRecordBatch())
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	bytesFor := func(where string, columns ...string) (n int64) {
		tree := store.NewCounter(store.NewMemory(map[string][]byte{"t": file.Bytes()}))
		table, err := stoa.Open(ctx, "t", stoa.OpenOptions{Formats: []format.Format{parquet.Format}, Tree: tree})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		tree.Reset()
		e, err := pred.Parse(where)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range table.Scan(ctx, stoa.ScanSpec{Columns: columns, Filter: e}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range tree.Reads() {
			n += int64(r.Len)
		}
		return n
	}
	all, part, one, none := bytesFor("id >= 0"), bytesFor("id >= 0", "p.b"), bytesFor("p.a = 2450000"),
		bytesFor("id = -5")
	t.Logf("%d bytes for all rows, %d for a child, %d for one row, %d for none", all, part, one, none)
	if all < int64(file.Len())*8/10 || part > all*8/10 || one > all/4 || none > all/10 {
		t.Errorf("got %d bytes for all rows, %d for a child, %d for one row, %d for none", all, part, one, none)
	}
}

// TestUnknownCodecInOneRowGroup: under a damage policy a chunk with an unknown codec costs the rows of its row group
// only; otherwise the scan is refused.
func TestUnknownCodecInOneRowGroup(t *testing.T) {
	ctx := context.Background()
	b, err := os.ReadFile("testdata/enc-dict.v1.parquet") // row groups of 70, 70 and 10 rows
	if err != nil {
		t.Fatal(err)
	}
	tree := store.NewMemory(map[string][]byte{"t": b})
	var codecs []int64
	for n, err := range parquet.Format.Describe(ctx, format.Target{Tree: tree, Name: "t"}, format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n.Name == "codec" {
			codecs = append(codecs, n.At.End()-1)
		}
	}
	table := func() *stoa.Table {
		t.Helper()
		table, err := stoa.Open(ctx, "t", stoa.OpenOptions{Formats: []format.Format{parquet.Format}, Tree: tree})
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	leaves := len(codecs) / 3
	if b = bytes.Clone(b); b[codecs[leaves]] != 0 {
		t.Fatal("the first column of the second row group is not uncompressed")
	}
	b[codecs[leaves]] = 3 << 1 // LZO
	tree.Put("t", b)
	scan := func(policy stoa.Damaged) (rows int64, lost [][2]int64, err error) {
		tab := table()
		defer tab.Close()
		for rec, e := range tab.Scan(ctx,
			stoa.ScanSpec{Columns: []string{"b", "full"}, Damaged: policy,
				Lost: func(l region.Loss) { lost = append(lost, l.Rows) }}) {
			if err = e; e == nil {
				rows += rec.NumRows()
			}
		}
		return rows, lost, err
	}
	if rows, lost, err := scan(stoa.SkipRows); rows != 80 || len(lost) != 1 || lost[0] != [2]int64{0, 70} ||
		err != nil {
		t.Errorf("got %d rows, lost %v, %v", rows, lost, err)
	}
	if _, _, err := scan(stoa.Fail); !errors.Is(err, fault.Unsupported) {
		t.Errorf("without a policy: got %v, want class Unsupported", err)
	}
	for g := range 3 {
		b[codecs[g*leaves]] = 3 << 1
	}
	if rows, _, err := scan(stoa.SkipRows); rows != 0 || !errors.Is(err, fault.Unsupported) {
		t.Errorf("only unknown codecs: got %d rows, %v", rows, err)
	}
}
