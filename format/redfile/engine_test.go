package redfile_test

import (
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// TestDamagedListPages: through the engine, a damaged page of a list column loses only its own rows if an index page
// states that pages begin with rows; without one it also loses the previous row, which may continue in the page.
func TestDamagedListPages(t *testing.T) {
	const rows = 120
	want := sampleBatch(0, rows)
	defer want.Release()
	pool := stoa.NewPool() // its buffers are reused, so they are not zeroed
	for _, index := range []string{"true", "false"} {
		whole := writeSample(t, rows, map[string]string{"row-group-rows": "60", "page-size": "40", "sync": "0",
			"index": index, "compression": "none"})
		pages := listPages(t, whole, "row_groups[1].columns[2]")
		first := int64(60)
		for i, p := range pages {
			b := append([]byte(nil), whole...)
			b[p.At.End()-1] ^= 0xff
			for _, policy := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
				lost := scanDamaged(t, b, policy, pool, want)
				if len(lost) != 1 {
					t.Fatalf("index=%s, page %d: lost %v", index, i, lost)
				}
				from, to := lost[0][0]+60, lost[0][1]+60 // they count in the row group
				if index == "false" && i > 0 {
					from++
				}
				if from != first || to <= from || to > rows {
					t.Errorf("index=%s, page %d: rows %v of the row group are lost, the page begins with row %d",
						index, i, lost[0], first-60)
				}
				if policy == stoa.NullCells {
					first = to
				}
			}
		}
		if first != rows {
			t.Errorf("index=%s: the pages end at row %d", index, first)
		}
	}
}

// listPages returns the data pages of a chunk.
func listPages(t *testing.T, file []byte, name string) (pages []region.Node) {
	t.Helper()
	nodes, err := describeAll(target(file))
	if err != nil {
		t.Fatal(err)
	}
	chunk := ""
	for _, n := range nodes {
		if n.Depth == 0 {
			chunk = n.Name
		}
		if chunk == name && n.Depth == 1 && strings.HasPrefix(n.Value, "DATA") {
			pages = append(pages, n)
		}
	}
	if len(pages) < 4 {
		t.Fatalf("%d pages", len(pages))
	}
	return pages
}

// scanDamaged scans a file of the table want and compares all returned rows with it; it returns the reported losses.
func scanDamaged(t *testing.T, file []byte, policy stoa.Damaged, pool memory.Allocator,
	want arrow.RecordBatch) (lost [][2]int64) {
	t.Helper()
	tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"f.red": file})})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var gone []int // rows that are missing or have a null
	damaged := 2   // in this column
	spec := stoa.ScanSpec{Damaged: policy, Alloc: pool, Batch: 50, Lost: func(l region.Loss) {
		lost = append(lost, l.Rows)
		if l.Column != "" && policy == stoa.NullCells {
			damaged = tab.Schema().FieldIndices(l.Column)[0]
		}
		for r := l.Rows[0]; r < l.Rows[1]; r++ {
			gone = append(gone, int(r)+60*l.Group)
		}
	}}
	row := 0
	missing := func() bool { // is this row one of them? Losses are reported before the rows after them
		for _, g := range gone {
			if g == row {
				return true
			}
		}
		return false
	}
	for b, err := range tab.Scan(ctx, spec) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			for policy == stoa.SkipRows && missing() {
				row++
			}
			for c := range int(b.NumCols()) {
				got, exp := b.Column(c).ValueStr(i), want.Column(c).ValueStr(row)
				if c == damaged && policy == stoa.NullCells && missing() {
					exp = "(null)"
				}
				if got != exp {
					t.Fatalf("row %d, column %d: %s, it was %s; lost %v", row, c, got, exp, lost)
				}
			}
			row++
		}
		b.Release()
	}
	for policy == stoa.SkipRows && missing() {
		row++
	}
	if row != int(want.NumRows()) {
		t.Fatalf("%d rows and losses, the table has %d", row, want.NumRows())
	}
	return lost
}

// TestPartsOfPages: pages with very many entries, most of them runs of nulls, are returned in parts. Decoding the parts
// in order, in any order, or singly has the same result.
func TestPartsOfPages(t *testing.T) {
	const rows = 1 << 20
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	}, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer rb.Release()
	for i := range rows {
		if i%1000 > 1 {
			rb.Field(0).AppendNull()
			rb.Field(1).AppendNull()
			rb.Field(2).AppendNull()
			continue
		}
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
		rb.Field(1).(*array.StringBuilder).Append(strings.Repeat("ab", i%5))
		l := rb.Field(2).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{int32(i), 7}, nil)
	}
	batch := rb.NewRecordBatch()
	defer batch.Release()
	for _, codec := range []string{"none", "gzip"} {
		tg := target(writeTable(t, map[string]string{"page-size": "100000000", "compression": codec}, batch))
		for f := range redfile.Format.Verify(ctx, tg, format.OpenOptions{}) {
			t.Errorf("%+v", f)
		}
		r, err := redfile.Format.Open(ctx, tg, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
		if err != nil || len(groups) != 1 {
			t.Fatal(err, len(groups))
		}
		for col := range 3 {
			inParts(t, r, tg, groups[0], col)
		}
		r.Close()
	}
}

// inParts decodes the parts of a chunk's pages in order and in random order, and compares the results with each other
// and, where values do not repeat, with the formula.
func inParts(t *testing.T, r format.Reader, tg format.Target, g format.RowGroup, col int) {
	t.Helper()
	c, err := r.Chunk(ctx, g, col, vec.Range{To: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	objects := scan.NewObjects(tg.Tree)
	defer objects.Close()
	var tasks []format.Task
	var from []int64
	at := int64(0)
	for {
		p, err := c.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := scan.ReadSpan(ctx, objects, p.Spans[0])
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, format.Task{Page: p, N: p.Entries, Bytes: [][]byte{b},
			Limits: format.Limits{}.WithDefaults()})
		from, at = append(from, at), at+p.Entries
	}
	if len(tasks) < 2 {
		t.Fatalf("column %d: %d parts", col, len(tasks))
	}
	order := make([]int, len(tasks))
	for i := range order {
		order[i] = i
	}
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(len(tasks))
	for _, i := range append(order, shuffled...) {
		v, err := vec.New(r.Columns()[col].Type, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		var arena vec.Arena
		task := tasks[i]
		task.Scratch = &arena
		if err := c.Decode(&task, v); err != nil {
			t.Fatal(err)
		}
		n := v.Len()
		if int64(n) != task.N {
			t.Fatalf("column %d, part %d: %d entries of %d", col, i, n, task.N)
		}
		a, err := v.Emit(n)
		if err != nil {
			t.Fatal(err)
		}
		checkPart(t, col, from[i], a)
		a.Release()
	}
}

func checkPart(t *testing.T, col int, from int64, a arrow.Array) {
	t.Helper()
	per := int64(1000) // entries of a thousand rows
	if col == 2 {
		per = 1002
	}
	for k := range a.Len() {
		e := from + int64(k)
		i, in := int(e/per)*1000, int(e%per)
		want := "(null)"
		switch {
		case col == 0 && in < 2:
			want = strconv.Itoa(i + in)
		case col == 1 && in < 2:
			want = strings.Repeat("ab", (i+in)%5)
		case col == 2 && in < 4:
			want = []string{strconv.Itoa(i + in/2), "7"}[in%2]
		}
		if a.ValueStr(k) != want {
			t.Fatalf("column %d, entry %d: %s, not %s", col, e, a.ValueStr(k), want)
		}
	}
}

// TestDictionaries: RedFile has no dictionaries; columns with one are written as plain values, at top level and inside
// lists and structs.
func TestDictionaries(t *testing.T) {
	words := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	numbers := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.PrimitiveTypes.Int64}
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "w", Type: words, Nullable: true},
		{Name: "n", Type: numbers},
		{Name: "l", Type: arrow.ListOf(words), Nullable: true},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: words, Nullable: true})},
	}, nil)
	json := `[{"l":["x",null,"y"],"n":7,"s":{"x":"p"},"w":"a"},{"l":null,"n":-8,"s":{"x":null},"w":null},{"l":[],` +
		`"n":7,"s":{"x":"q"},"w":"b"},{"l":["y"],"n":9,"s":{"x":"p"},"w":"a"}]`
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(json))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	mem := store.NewMemory(nil)
	w, err := redfile.Format.Create(ctx, mem.Sink("f.red"), sc, format.WriteOptions{Rows: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(ctx, b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: mem})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for i, want := range []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64,
		arrow.ListOf(arrow.BinaryTypes.String)} {
		if got := tab.Schema().Field(i).Type; !arrow.TypeEqual(got, want) {
			t.Errorf("field %d came back as %s", i, got)
		}
	}
	rows := 0
	for got, err := range tab.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := got.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if s := strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ""); s != json {
			t.Errorf("%s came back as %s", json, s)
		}
		rows += int(got.NumRows())
		got.Release()
	}
	if rows != 4 {
		t.Errorf("%d rows", rows)
	}
}
