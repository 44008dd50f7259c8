package laws_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/pred"
	"stoa/region"
)

var coded = map[string]string{"dictionary_include": "country,code,day"}

// dictionaryTables has properties of tables and options of loads that determine how columns are coded.
var dictionaryTables = map[string]struct {
	properties, opts map[string]string
	way              string
}{
	"global, format 3":      {properties: coded},
	"global, format 2":      {coded, map[string]string{"version": "2"}, ""},
	"global, format 1":      {coded, map[string]string{"version": "1"}, ""},
	"global, in two passes": {map[string]string{"dictionary_include": "country,code"}, nil, "two-pass"},
	"local":                 {properties: map[string]string{"local_dictionary_threshold": "1000"}},
	"none":                  {properties: map[string]string{"local_dictionary_enable": "false"}},
}

// dictionaryRow is what a row of these tables should have; nil is null.
type dictionaryRow struct {
	id           int
	country, day *string
	code         *int
}

func (r *dictionaryRow) json() string {
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return fmt.Sprintf("%q", *s)
	}
	code := "null"
	if r.code != nil {
		code = fmt.Sprint(*r.code)
	}
	return fmt.Sprintf(`{"id":%d,"country":%s,"code":%s,"day":%s}`, r.id, text(r.country), code, text(r.day))
}

// TestUpdatesOfDictionaries: after any update a column with a global dictionary, a local one or none has the values
// that were set, including values that no load had. Filters find the rows by these values, and verify reports no
// errors. All this also holds after a compaction.
func TestUpdatesOfDictionaries(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "country", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "code", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true}}, nil)
	for name, c := range dictionaryTables {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(17, uint64(len(name))))
			dir := filepath.Join(t.TempDir(), "t")
			if err := stoa.CreateTable(t.Context(), dir, sc, stoa.CreateTableOptions{
				TableSpec: format.TableSpec{Properties: c.properties}}, stoa.OpenOptions{}); err != nil {
				t.Fatal(err)
			}
			changer := changerOf(t, dir, nil)
			var rows []dictionaryRow
			load := func(n int) {
				var list []string
				for range n {
					country, code := fmt.Sprint("land ", r.IntN(8)), r.IntN(20)
					day := fmt.Sprintf("2020-01-%02d", 1+r.IntN(28))
					row := dictionaryRow{id: len(rows), country: &country, code: &code, day: &day}
					if r.IntN(5) == 0 {
						row.country, row.day = nil, nil
					}
					rows, list = append(rows, row), append(list, row.json())
				}
				batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc,
					strings.NewReader("["+strings.Join(list, ",")+"]"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := changer.Append(t.Context(), sc, onceRows(batch),
					stoa.AppendOptions{Opts: c.opts, Dictionary: c.way}); err != nil {
					t.Fatal(err)
				}
			}
			load(40)
			for i := range 8 {
				set, change := updateOf(r, i)
				from := r.IntN(len(rows))
				where := fmt.Sprintf("id >= %d and id < %d", from, from+1+r.IntN(10))
				if i%3 == 2 { // filter by a column of codes
					code := r.IntN(20)
					where = fmt.Sprintf("code = %d", code)
					from = -code - 1
				}
				if _, err := changer.Update(t.Context(), stoa.UpdateOptions{Where: where, Set: set}); err != nil {
					t.Fatalf("update %d, %s: %v", i, where, err)
				}
				var low, high int
				_, err := fmt.Sscanf(where, "id >= %d and id < %d", &low, &high)
				for k := range rows {
					if row := &rows[k]; err == nil && row.id >= low && row.id < high ||
						err != nil && row.code != nil && *row.code == -from-1 {
						change(row)
					}
				}
				sameDictionaryRows(t, dir, rows)
				if i == 3 {
					load(25)
				}
			}
			major := stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}}
			if _, err := changer.Compact(t.Context(), major); err != nil {
				t.Fatal(err)
			}
			sameDictionaryRows(t, dir, rows)
		})
	}
}

// updateOf returns what the i-th update sets: existing values, new values, and nulls.
func updateOf(r *rand.Rand, i int) (set map[string]*string, change func(*dictionaryRow)) {
	country, code, day := fmt.Sprint("land ", r.IntN(8)), r.IntN(20), fmt.Sprintf("2020-01-%02d", 1+r.IntN(28))
	if i%2 == 0 {
		country, code, day = fmt.Sprint("new ", i, " länd, \"quoted\""), 1000*(i-4), fmt.Sprintf("19%02d-12-31", 69+i)
	}
	codeText := fmt.Sprint(code)
	switch i % 4 {
	case 0:
		return map[string]*string{"country": &country}, func(row *dictionaryRow) { row.country = &country }
	case 1:
		return map[string]*string{"code": &codeText, "day": nil},
			func(row *dictionaryRow) { row.code, row.day = &code, nil }
	case 2:
		return map[string]*string{"code": &codeText, "day": &day, "country": &country},
			func(row *dictionaryRow) { row.code, row.day, row.country = &code, &day, &country }
	}
	return map[string]*string{"country": nil, "day": &day},
		func(row *dictionaryRow) { row.country, row.day = nil, &day }
}

// sameDictionaryRows compares a table with the rows that it should have, with a full scan and with a filter on each
// value, and verifies it.
func sameDictionaryRows(t *testing.T, dir string, rows []dictionaryRow) {
	t.Helper()
	for f, err := range stoa.Verify(t.Context(), dir, stoa.OpenOptions{}) {
		if err != nil || f.Severity >= region.Warning {
			t.Fatalf("%v, %s: %s", err, f.Code, f.Message)
		}
	}
	tab, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	countries := map[string]int{}
	want := map[int]string{}
	for i := range rows {
		want[rows[i].id] = rows[i].json()
		if c := rows[i].country; c != nil {
			countries[*c]++
		}
	}
	n := 0
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			row := rowAt(b, i)
			if n++; want[row.id] != row.json() {
				t.Fatalf("%s, want %s", row.json(), want[row.id])
			}
			delete(want, row.id)
		}
	}
	if len(want) > 0 || n != len(rows) {
		t.Fatalf("%d rows of %d, missing %v", n, len(rows), want)
	}
	for c, k := range countries {
		e, err := pred.Parse("country = '" + c + "'")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tab.Count(t.Context(), stoa.ScanSpec{Filter: e}); err != nil || got != int64(k) {
			t.Fatalf("country %s: %d rows of %d, %v", c, got, k, err)
		}
	}
}

// rowAt returns row i of a batch.
func rowAt(b arrow.RecordBatch, i int) dictionaryRow {
	row := dictionaryRow{id: int(b.Column(0).(*array.Int64).Value(i))}
	if c := b.Column(1).(*array.String); !c.IsNull(i) {
		s := strings.Clone(c.Value(i))
		row.country = &s
	}
	if c := b.Column(2).(*array.Int32); !c.IsNull(i) {
		n := int(c.Value(i))
		row.code = &n
	}
	if c := b.Column(3).(*array.Date32); !c.IsNull(i) {
		s := c.Value(i).FormattedString()
		row.day = &s
	}
	return row
}
