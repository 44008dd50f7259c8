package text

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/cells"
	"stoa/store"
	"stoa/vec"
)

// TestMalformedRowsBetween: bad rows that alternate with good rows end a batch each, but only the first few of them;
// each is reported with its row, and the good rows are read as written.
func TestMalformedRowsBetween(t *testing.T) {
	const pairs = 3000
	for _, c := range []struct {
		name            string
		f               format.Format
		schema          string
		head, malformed string
		good            func(i int) string
		want            func(i int) string // as JSON
	}{
		{"a key that is not in the schema", JSONL, "a: int64, b: utf8", "", `{"a":1,"c":2}`,
			func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) },
			func(i int) string { return fmt.Sprintf(`{"a":%d,"b":null}`, i) }},
		{"half a list", JSONL, "a: list<int64>, b: int64", "", `{"b":7,"a":[1,2,"x"]}`,
			func(i int) string { return fmt.Sprintf(`{"a":[%d,2],"b":3}`, i) },
			func(i int) string { return fmt.Sprintf(`{"a":[%d,2],"b":3}`, i) }},
		{"half a struct", JSONL, "s: struct<x: list<int64>, y: utf8>", "", `{"s":{"x":[1],"y":"a","x":2}}`,
			func(i int) string { return fmt.Sprintf(`{"s":{"x":[%d]}}`, i) },
			func(i int) string { return fmt.Sprintf(`{"s":{"x":[%d],"y":null}}`, i) }},
		{"half a map", JSONL, "m: map<utf8, int64>", "", `{"m":{"k":1,"l":"x"}}`,
			func(i int) string { return fmt.Sprintf(`{"m":{"k":%d}}`, i) },
			func(i int) string { return fmt.Sprintf(`{"m":[{"key":"k","value":%d}]}`, i) }},
		{"the last cell", CSV, "a: int64, b: utf8, c: list<int64>", "a,b,c\n", `1,x,"[1,x]"`,
			func(i int) string { return fmt.Sprintf(`%d,"x",[1]`, i) },
			func(i int) string { return fmt.Sprintf(`{"a":%d,"b":"x","c":[1]}`, i) }},
		{"too many fields", CSV, "a: int64, b: utf8", "a,b\n", `1,2,3`,
			func(i int) string { return fmt.Sprintf(`%d,`, i) },
			func(i int) string { return fmt.Sprintf(`{"a":%d,"b":null}`, i) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text strings.Builder
			text.WriteString(c.head)
			for i := range pairs {
				fmt.Fprintf(&text, "%s\n%s\n", c.good(i), c.malformed)
			}
			_, batches, errs := read(c.f, tree(text.String()), map[string]string{"schema": c.schema}, nil, vec.Range{})
			if len(batches) > inOrder+1 {
				t.Errorf("%d batches", len(batches))
			}
			i := 0
			for _, b := range batches {
				row := array.RecordToStructArray(b)
				for k := range int(b.NumRows()) {
					if got := string(cells.AppendJSON(nil, row, k)); got != c.want(i) {
						t.Fatalf("row %d is %s, want %s", i, got, c.want(i))
					}
					i++
				}
			}
			if i != pairs || len(errs) != pairs {
				t.Fatalf("%d rows, %d errors", i, len(errs))
			}
			for k, err := range errs {
				var at *rowError
				if !errors.As(err, &at) || at.row != int64(2*k+1) || !errors.Is(err, fault.Corrupt) {
					t.Fatalf("error %d: %v", k, err)
				}
			}
		})
	}
}

// TestSparseRows: missing members are null, wherever the values begin and end in a batch, with bad rows between.
func TestSparseRows(t *testing.T) {
	const rows, columns = 3000, 40
	r := rand.New(rand.NewPCG(7, 8))
	types := []string{"int64", "utf8", "bool", "float64", "int32", "list<int64>", "binary", "decimal128(9, 2)"}
	values := []string{"%d", `"s%d"`, "true", "%d.5", "%d", "[%d]", `"QUJD"`, `"%d.25"`}
	var schema []string
	for c := range columns {
		schema = append(schema, fmt.Sprintf("k%d: %s", c, types[c%len(types)]))
	}
	for _, bad := range []int{0, 3, 100} { // one row in this many
		var text, want strings.Builder
		for i := range rows {
			var some, all []string
			for c := range columns {
				v := "null"
				if r.IntN(rows) < 2*c*c || i > 2900 && c == 0 {
					v = strings.TrimSuffix(fmt.Sprintf(values[c%len(values)], i%60),
						"%!(EXTRA int="+fmt.Sprint(i%60)+")")
					some = append(some, fmt.Sprintf(`"k%d":%s`, c, v))
				}
				all = append(all, fmt.Sprintf(`"k%d":%s`, c, v))
			}
			if bad > 0 && r.IntN(bad) == 0 {
				fmt.Fprintf(&text, "{%s}\n", strings.Join(append(some, `"x":1`), ","))
				continue
			}
			fmt.Fprintf(&text, "{%s}\n", strings.Join(some, ","))
			fmt.Fprintf(&want, "{%s}\n", strings.Join(all, ","))
		}
		sc, batches, errs := read(JSONL, tree(text.String()),
			map[string]string{"schema": strings.Join(schema, ", ")}, nil, vec.Range{})
		var got strings.Builder
		w := cells.NewJSONLWriter(&got, sc)
		for _, b := range batches {
			if err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		w.Flush()
		if got.String() != want.String() || (bad == 0) != (errs == nil) {
			if bad == 0 && errs != nil {
				t.Fatal(errs[0])
			}
			a, b := strings.Split(got.String(), "\n"), strings.Split(want.String(), "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Fatalf("one of %d is bad: row %d is\n%s, want\n%s", bad, i, a[i], b[i])
				}
			}
			t.Fatalf("%d rows, want %d", len(a), len(b))
		}
	}
}

// TestOneOfManyColumns: if each row has only one of very many columns, the others take no memory of their own in each
// batch.
func TestOneOfManyColumns(t *testing.T) {
	const rows, columns = 20_000, 5000
	var schema []string
	for c := range columns {
		schema = append(schema, fmt.Sprintf("k%d: int64", c))
	}
	tr := tree(strings.Repeat("{\"k7\":1}\n", rows))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, batches, errs := read(JSONL, tr, map[string]string{"schema": strings.Join(schema, ", ")}, nil, vec.Range{})
	runtime.ReadMemStats(&after)
	n, ones, nulls := int64(0), 0, 0
	for _, b := range batches {
		n += b.NumRows()
		ones += b.Column(7).Len() - b.Column(7).NullN()
		nulls += b.Column(6).NullN() + b.Column(columns-1).NullN()
	}
	if n != rows || ones != rows || nulls != 2*rows || errs != nil {
		t.Errorf("%d rows, %d values, %d nulls, %v", n, ones, nulls, errs)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > rows*columns {
		t.Errorf("%d bytes for %d cells", took, rows*columns)
	}
}

// TestMissingMembers: the memory of missing members is counted: in a batch, and in a row, in which each {} of two bytes
// may stand for as many values as a struct has fields.
func TestMissingMembers(t *testing.T) {
	const fields = 5000
	var schema, inner []string
	for i := range fields {
		schema = append(schema, fmt.Sprintf("k%d: int64", i))
	}
	inner = append(inner, "a: list<struct<"+strings.Join(schema, ", ")+">>")
	for name, c := range map[string]struct{ schema, text string }{
		"of the row":   {strings.Join(schema, ", "), strings.Repeat("{\"k1\":1}\n", 1000)},
		"of an object": {inner[0], strings.Repeat("{\"a\":[{}]}\n", 1000)},
		"of a struct that is missing": {"b: int64, s: struct<" + strings.Join(schema, ", ") + ">",
			strings.Repeat("{\"b\":1}\n", 1000)},
		"of a struct that is null": {"s: struct<" + strings.Join(schema, ", ") + ">",
			strings.Repeat("{\"s\":null}\n", 1000)},
		"of a list of fixed size": {"b: int64, s: fixed_size_list<item: int64, nullable>[5000]",
			strings.Repeat("{\"b\":1}\n", 1000)},
	} {
		_, batches, errs := read(JSONL, tree(c.text), map[string]string{"schema": c.schema}, nil, vec.Range{})
		rows := int64(0)
		for _, b := range batches {
			rows += b.NumRows()
			if cells := b.NumRows() * fields; cells > maxText/bytesOfMissing+fields {
				t.Errorf("%s: a batch of %d cells", name, cells)
			}
		}
		if rows != 1000 || errs != nil {
			t.Errorf("%s: %d rows, %v", name, rows, errs)
		}
	}
	o := format.OpenOptions{Opts: map[string]string{"schema": inner[0]}, Limits: format.Limits{Page: 64 << 20}}
	text := "{\"a\":[{}]}\n{\"a\":[" + strings.Repeat("{},", 400) + "{}]}\n"
	var found []string
	for f := range JSONL.Verify(context.Background(),
		format.Target{Tree: store.NewMemory(map[string][]byte{"t": []byte(text)}), Name: "t"}, o) {
		found = append(found, fmt.Sprint(f.Code, f.At, f.Path))
	}
	if want := "[jsonl.unreadablet[11+1210]line 2]"; fmt.Sprint(found) != want {
		t.Errorf("%v, want %s", found, want)
	}
}

// rowsAfter reads text as recovery does: it returns the good rows as JSON lines, and the locations of the others.
func rowsAfter(t *testing.T, f format.Format, text string) (rows string, malformed []string) {
	t.Helper()
	sc, got, errs := read(f, tree(text), nil, nil, vec.Range{})
	var buf strings.Builder
	w := cells.NewJSONLWriter(&buf, sc)
	for _, b := range got {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	for _, err := range errs {
		var e *fault.Error
		var row *rowError
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		place := fmt.Sprintf("%s %s", e.At, e.Path)
		if errors.As(err, &row) {
			place += fmt.Sprintf(" row %d", row.row)
		}
		malformed = append(malformed, place)
	}
	return buf.String(), malformed
}

// TestRowsAfterMalformedLines: lines after a damaged line are read, and count for type inference, whatever the damage
// is: a surplus quote, or the first line.
func TestRowsAfterMalformedLines(t *testing.T) {
	for _, c := range []struct {
		f               format.Format
		text            string
		rows, malformed string
	}{
		{CSV, "a,b\n1,x\n2,\"y\"z\n3.5,\"u\"\n", `{"a":1,"b":"x"}|{"a":3.5,"b":"u"}|`, "[t[10+3] line 3 row 1]"},
		{CSV, "a,b\n1,x\n2,\"y\n3.5,u\n4,v\n", `{"a":1,"b":"x"}|{"a":3.5,"b":"u"}|{"a":4,"b":"v"}|`,
			"[t[10+13] line 3 row 1]"},
		{CSV, "a,b\n\"1\n2\",\"y\n3,\"u\"\n4,v\n", `{"a":3,"b":"u"}|{"a":4,"b":"v"}|`, "[t[10+6] line 3 row 0]"},
		{CSV, "a,b\n1,x\n2,\"y\n3.5,\"\"\n4,v\n5,\"z\"\n6,\"w\"\n",
			`{"a":1,"b":"x"}|{"a":3.5,"b":""}|{"a":4,"b":"v"}|{"a":5,"b":"z"}|{"a":6,"b":"w"}|`,
			"[t[10+17] line 3 row 1]"},
		{CSV, "a,b\n1,x\n2,\"y\n3,x\",\"z\"\n4,v\n", `{"a":1,"b":"x"}|{"a":4,"b":"v"}|`, "[t[8+14] line 3 row 1]"},
		{CSV, "a,b\n1,x\n2,\"y", `{"a":1,"b":"x"}|`, "[t[10+2] line 3]"},
		{JSONL, "{\"a\":1,}\n{\"a\":1}\n{\"a\":2.5}\n", `{"a":1}|{"a":2.5}|`, "[t[7+1] line 1 row 0]"},
		{JSONL, "{\"a\":1}\n\x00\x00\x00\n{\"a\":2.5}\n[1]\n{\"a\":3,\"b\":\"\xff\"}\n{\"a\":3,\"b\":4}\n",
			`{"a":1,"b":null}|{"a":2.5,"b":null}|{"a":3,"b":4}|`,
			"[t[8+1] line 2 row 1 t[22+1] line 4 row 3 t[38+1] line 5, column \"b\" row 4]"},
	} {
		rows, malformed := rowsAfter(t, c.f, c.text)
		if got := strings.ReplaceAll(rows, "\n", "|"); got != c.rows || fmt.Sprint(malformed) != c.malformed {
			t.Errorf("%s %q:\n got %s %s\nwant %s %s", c.f.Name, c.text, got, malformed, c.rows, c.malformed)
		}
	}
}

// TestInsideOfCells: after a misplaced quote, the inside of a cell of the same record is never taken for a row, and the
// rows after the record are read.
func TestInsideOfCells(t *testing.T) {
	for _, c := range []struct{ text, rows, malformed string }{
		// a misplaced quote, and another cell of several lines
		{"a,b\n1,2\n\"x\"y,\"m\n7,8\n9,10\nend\"\n5,6\n", `{"a":1,"b":2}|{"a":5,"b":6}|`, "[t[8+3] line 3 row 1]"},
		{"a,b\r\n1,2\r\n\"x\"y,\"m\r\n7,8\r\nend\"\r\n5,6\r\n", `{"a":1,"b":2}|{"a":5,"b":6}|`,
			"[t[10+3] line 3 row 1]"},
		// a surplus quote before the cell of several lines
		{"a,b,c\n1,2,3\n4,\"y,\"m\n7,8,9\nend\"\n5,6,7\n", `{"a":1,"b":2,"c":3}|{"a":5,"b":6,"c":7}|`,
			"[t[14+4] line 3 row 1]"},
		// undoubled quotes in a cell of several lines
		{"a,b\n1,\"he said \"hi\" ok\n7,8\nmore\"\n5,6\n", `{"a":5,"b":6}|`, "[t[6+10] line 2 row 0]"},
		// the misplaced quote ends a cell of several lines, which is not the last cell
		{"a,b\n\"m\n7,8\nend\"x,2\n5,6\n", `{"a":5,"b":6}|`, "[t[4+11] line 2 row 0]"},
		// a record of one field cannot end in the first line of this cell
		{"a,b,c\n\"m\n7,8,9\n,\"x\" y\",2,3\n5,6,7\n", `{"a":5,"b":6,"c":7}|`, "[t[6+11] line 2 row 0]"},
		// two records with surplus quotes
		{"a,b\n1,\"x\n2,y\n3,\"z\"\n4,\"u\"v\n5,6\n", `{"a":2,"b":"y"}|{"a":3,"b":"z"}|{"a":5,"b":"6"}|`,
			"[t[6+10] line 2 row 0 t[21+3] line 5 row 3]"},
	} {
		rows, malformed := rowsAfter(t, CSV, c.text)
		if got := strings.ReplaceAll(rows, "\n", "|"); got != c.rows || fmt.Sprint(malformed) != c.malformed {
			t.Errorf("%q:\n got %s %s\nwant %s %s", c.text, got, malformed, c.rows, c.malformed)
		}
	}
}

// TestEndlessQuotes: lines that each open a quote that never ends, or ends wrongly, are scanned a bounded number of
// times.
func TestEndlessQuotes(t *testing.T) {
	for _, start := range []string{`q",,"`, `q,"`, `q,"x"y`, `q,""`, `"""`, `q,"x"y"z`, `",`, `q,"""x"y,"`, `q,""""`} {
		line := start + strings.Repeat("b", 4<<10) + "\n"
		text := "a,b\n" + strings.Repeat(line, 1000)
		in, err := newInputOf(&sequential{ctx: context.Background(), src: whole(t, []byte(text)), end: -1},
			format.Target{Name: "t"}, format.Limits{}, inputChunk)
		if err != nil {
			t.Fatal(err)
		}
		s := newCSVScanner(in, ',')
		s.columns = 2
		for err == nil {
			if err = s.next(false); err != nil {
				var one *rowError
				if err = s.resume(err); errors.As(err, &one) {
					err = nil
				}
			}
		}
		if s.again > int64(len(text)) || err != io.EOF && quoteOf(err) == nil {
			t.Errorf("%s: %d bytes once more, of %d; %v", start, s.again, len(text), err)
		}
	}
}

// TestCutAnywhere: records with misplaced quotes are the same however much of the text is buffered at a time.
func TestCutAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	cut := func(text []byte, chunk int) (out []string) {
		in, err := newInputOf(&sequential{ctx: context.Background(), src: whole(t, text), end: -1},
			format.Target{Name: "t"}, format.Limits{}, chunk)
		if err != nil {
			t.Fatal(err)
		}
		s := newCSVScanner(in, ',')
		s.columns = 2
		for {
			err := s.next(false)
			if err == nil {
				out = append(out, fmt.Sprintf("line %d, %d bytes, %v", s.line, s.size, s.fields))
				continue
			}
			err = s.resume(err)
			var one *rowError
			if out = append(out, err.Error()); !errors.As(err, &one) {
				return out
			}
		}
	}
	for range 20_000 {
		text := make([]byte, 1+r.IntN(40))
		for i := range text {
			text[i] = "\"\"\",,\n\nab\r"[r.IntN(10)]
		}
		want := fmt.Sprint(cut(text, 1<<10))
		for _, chunk := range []int{1, 3, 8} {
			if got := fmt.Sprint(cut(text, chunk)); got != want {
				t.Fatalf("%q, %d bytes at once:\n got %s\nwant %s", text, chunk, got, want)
			}
		}
	}
}

func whole(t *testing.T, text []byte) store.Source {
	src, err := tree(string(text)).Open(context.Background(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestFarQuotes: the search for the quote that ends a field with a misplaced one does not extend to the text's end.
func TestFarQuotes(t *testing.T) {
	text := "a,b\n1,\"x\"y\n" + strings.Repeat("2,z\n", maxQuoteScan/4) + "3,z\"\n"
	rows, malformed := rowsAfter(t, CSV, text)
	if n := strings.Count(rows, "\n"); n != maxQuoteScan/4+1 || fmt.Sprint(malformed) != "[t[6+3] line 2 row 0]" {
		t.Errorf("%d rows, %s", n, malformed)
	}
}

// TestLinesOfCR: a text whose lines end in CR alone has no rows, but is not empty. If lines end in LF, CR is a
// character of a name or a value.
func TestLinesOfCR(t *testing.T) {
	for _, c := range []struct {
		text, header string
		want         string // of verify; otherwise the rows
	}{
		{"a,b\r1,2\r3,4\r", "true", "[csv.unreadablet[0+12]line 1]"},
		{"a,b\r1,2\r3,4\r", "false", "[csv.unreadablet[0+12]line 1]"},
		{"a,b\r1,2\r3,4\n", "true", "[csv.unreadablet[0+12]line 1]"},
		{"1,foo\rbar\n2,baz\n", "false", `{"c1":1,"c2":"foo\rbar"}|{"c1":2,"c2":"baz"}|`},
		{"1,foo\rbar\n", "false", `{"c1":1,"c2":"foo\rbar"}|`},
		{"a,b\r\r\n1,2\r\r\n", "true", `{"a":1,"b\r":"2\r"}|`},
		{"a\rx,b\n1,2", "true", `{"a\rx":1,"b":2}|`},
		{"\"a\rx\",b\r\n", "true", ""},
		{"a,b\r", "true", ""},
	} {
		var found []string
		for f := range CSV.Verify(context.Background(), format.Target{Tree: tree(c.text), Name: "t"},
			format.OpenOptions{Opts: map[string]string{"header": c.header}}) {
			found = append(found, fmt.Sprint(f.Code, f.At, f.Path))
		}
		got := fmt.Sprint(found)
		if found == nil {
			var buf strings.Builder
			sc, batches, errs := read(CSV, tree(c.text), map[string]string{"header": c.header}, nil, vec.Range{})
			w := cells.NewJSONLWriter(&buf, sc)
			for _, b := range batches {
				if err := w.Write(b); err != nil || errs != nil {
					t.Fatal(err, errs)
				}
			}
			w.Flush()
			got = strings.ReplaceAll(buf.String(), "\n", "|")
		}
		if got != c.want {
			t.Errorf("%q, header=%s: %s, want %s", c.text, c.header, got, c.want)
		}
	}
	got, malformed := rowsAfter(t, CSV, "a,b\r\n1,x\ry\r\n")
	if got != "{\"a\":1,\"b\":\"x\\ry\"}\n" || malformed != nil {
		t.Error(got, malformed)
	}
}
