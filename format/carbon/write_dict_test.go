package carbon_test

import (
	"fmt"
	"iter"
	"os"
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
	"stoa/pred"
	"stoa/store"
)

// Tables with global dictionaries, in each of the four dictionary modes and each format. interop/carbon-old checks that
// the real system reads them.

var visitFields = []arrow.Field{
	{Name: "country", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "code", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "at", Type: millis, Nullable: true}, {Name: "id", Type: arrow.PrimitiveTypes.Int32},
}

// visits returns rows; the text "" is null, as is code 0.
func visits(from int, countries ...string) arrow.RecordBatch {
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, arrow.NewSchema(visitFields, nil))
	defer b.Release()
	for i, c := range countries {
		if b.Field(3).(*array.Int32Builder).Append(int32(from + i)); c == "" {
			for k := range 3 {
				b.Field(k).AppendNull()
			}
			continue
		}
		b.Field(0).(*array.StringBuilder).Append(c)
		b.Field(1).(*array.Int32Builder).Append(int32(len(c)))
		b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(1000 * (from + i)))
	}
	return b.NewRecordBatch()
}

func loadVisits(t testing.TB, dir, way string, opts map[string]string, rows arrow.RecordBatch) error {
	t.Helper()
	o := carbon.LoadOptions{Opts: opts}
	if way != "" {
		var err error
		if o.Dictionary, err = carbon.ParseDictionaryWay(way); err != nil {
			t.Fatal(err)
		}
		o.Dictionary.Rows = func() iter.Seq2[arrow.RecordBatch, error] {
			return func(yield func(arrow.RecordBatch, error) bool) { yield(rows, nil) }
		}
	}
	l, err := carbon.BeginLoad(t.Context(), dir, rows.Schema(), o)
	if err != nil {
		return err
	}
	if err = l.Write(t.Context(), rows); err == nil {
		_, err = l.Close(t.Context())
	}
	if err != nil {
		if e := l.Abort(t.Context()); e != nil {
			t.Error(e)
		}
	}
	formattest.Sound(t, &carbon.Format, store.Local{}, dir) // in its current or its previous state
	return err
}

func newVisits(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "visits")
	if err := carbon.CreateTable(dir, "",
		carbon.TableSpec{Schema: arrow.NewSchema(visitFields, nil),
			Properties: map[string]string{"dictionary_include": "country, CODE,at"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// dictionaryOf returns the values of a table's dictionaries, each joined, in any order.
func dictionaryOf(t testing.TB, dir string) (out []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "Metadata", "*.dict"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		_, rows, err := read(t, f, stoa.OpenOptions{}, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		var v []string
		for _, r := range rows {
			v = append(v, strings.Trim(r["value"], `"`))
		}
		out = append(out, strings.Join(v, " "))
	}
	slices.Sort(out)
	return out
}

func TestDictionaryWays(t *testing.T) {
	pre := t.TempDir()
	all := filepath.Join(t.TempDir(), "all.csv")
	if err := os.WriteFile(filepath.Join(pre, "Country.csv"), []byte("nl,Netherlands\n\"fr\"\nde\nfoo\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(all, []byte("0,nl\n0,fr\n3,7\n0,de\n0,sweden\n1,2\n1,06\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	rows := visits(0, "nl", "fr", "", "de", "nl")
	for way, want := range map[string][]string{
		"":                  {"null 2", "null nl fr de"},
		"single-pass":       {"null 2", "null nl fr de"},
		"two-pass":          {"null 2", "null de fr nl"},
		"predefined:" + pre: {"null 2", "null de foo fr nl"},
		"all:" + all:        {"null 2 6", "null de fr nl sweden"},
	} {
		for _, version := range []string{"3", "2", "1"} {
			opts := map[string]string{"version": version}
			name, _, _ := strings.Cut(way, ":")
			t.Run(name+version, func(t *testing.T) {
				dir := newVisits(t)
				if err := loadVisits(t, dir, way, opts, rows); err != nil {
					t.Fatal(err)
				}
				if got := dictionaryOf(t, dir); !slices.Equal(got, want) {
					t.Errorf("dictionaries %q, want %q", got, want)
				}
				more := visits(5, "de", "sweden", "fr")
				err := loadVisits(t, dir, way, opts, more)
				if refused := name == "predefined"; refused != (err != nil) {
					t.Fatal(err)
				} else if refused && !strings.Contains(err.Error(),
					`column country, row 1: the value "sweden" is not in the predefined dictionary`) {
					t.Error(err)
				}
				if err != nil {
					err = loadVisits(t, dir, "two-pass", opts, more)
				}
				if err != nil {
					t.Fatal(err)
				}
				_, got, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{})
				if err != nil {
					t.Fatal(err)
				}
				slices.SortFunc(got, func(a, b line) int { return strings.Compare(a["id"], b["id"]) })
				for i, c := range []string{"nl", "fr", "", "de", "nl", "de", "sweden", "fr"} {
					text, code, null := fmt.Sprintf("%q", c), fmt.Sprint(len(c)), got[i]["at"] == "null"
					if c == "" {
						text, code = "null", "null"
					}
					if len(got) != 8 || got[i]["country"] != text || got[i]["code"] != code || null != (c == "") {
						t.Fatalf("row %d of %d: %v, want %s, %s", i, len(got), got[i], text, code)
					}
				}
				healthy(t, dir)
			})
		}
	}
}

// TestDictionaryLeftovers: loads cope with the remains that killed loads left in a dictionary.
func TestDictionaryLeftovers(t *testing.T) {
	ids := func(dir string) (dict, meta, sort string) {
		files, _ := filepath.Glob(filepath.Join(dir, "Metadata", "*.dict"))
		for _, f := range files {
			if _, rows, _ := read(t, f, stoa.OpenOptions{},
				stoa.ScanSpec{}); strings.Contains(rows[len(rows)-1]["value"], "fr") {
				sorts, _ := filepath.Glob(strings.TrimSuffix(f, ".dict") + "_*.sortindex")
				return f, f + "meta", sorts[0]
			}
		}
		t.Fatal("got no dictionary of countries")
		return
	}
	for name, damage := range map[string]func(dict, meta, sort string) error{
		"torn .dict": func(dict, _, _ string) error {
			b, err := os.ReadFile(dict)
			if err != nil {
				return err
			}
			return os.WriteFile(dict, append(b, b[:len(b)-1]...), 0o666)
		},
		"a chunk without .dictmeta's knowing": func(dict, _, _ string) error {
			b, err := os.ReadFile(dict)
			if err != nil {
				return err
			}
			return os.WriteFile(dict, append(b, b...), 0o666)
		},
		"no .dictmeta":  func(_, meta, _ string) error { return os.Remove(meta) },
		"no .sortindex": func(_, _, sort string) error { return os.Remove(sort) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := newVisits(t)
			if err := loadVisits(t, dir, "", nil, visits(0, "nl", "fr")); err != nil {
				t.Fatal(err)
			}
			if err := damage(ids(dir)); err != nil {
				t.Fatal(err)
			}
			if err := loadVisits(t, dir, "two-pass", map[string]string{"version": "2"},
				visits(2, "se", "fr", "be")); err != nil {
				t.Fatal(err)
			}
			_, got, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, r := range got {
				all = append(all, r["country"])
			}
			slices.Sort(all) // format 2 is sorted by the codes
			if want := []string{`"be"`, `"fr"`, `"fr"`, `"nl"`, `"se"`}; !slices.Equal(all, want) {
				t.Errorf("%v", all)
			}
			if d := dictionaryOf(t, dir); !slices.Contains(d, "null nl fr be se") {
				t.Errorf("%q", d)
			}
			healthy(t, dir)
		})
	}
	t.Run("damaged", func(t *testing.T) { // codes other than those that readers see must not be assigned
		dir := newVisits(t)
		if err := loadVisits(t, dir, "", nil, visits(0, "nl", "fr")); err != nil {
			t.Fatal(err)
		}
		dict, _, _ := ids(dir)
		if err := os.Truncate(dict, 12); err != nil {
			t.Fatal(err)
		}
		if err := loadVisits(t, dir, "", nil, visits(2, "se")); err == nil {
			t.Error("got a load after a truncated dictionary, want an error")
		}
	})
}

// TestDictionaryOrder: verify accepts Java's sort order of texts, and reports nothing missing if there was no load.
func TestDictionaryOrder(t *testing.T) {
	dir := newVisits(t)
	healthy(t, dir)
	if err := loadVisits(t, dir, "", nil, visits(0, "\uf8ff", "a", "\U0001f600")); err != nil {
		t.Fatal(err)
	}
	healthy(t, dir)
	if got := countWhere(t, dir, "country >= '\uf8ff'"); got != 2 { // by code points, not by Java's order
		t.Errorf("%d rows", got)
	}
}

func countWhere(t testing.TB, dir, where string) int {
	t.Helper()
	filter, err := pred.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{Filter: filter})
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

// TestDictionaryRefused: columns that cannot have a dictionary are refused.
func TestDictionaryRefused(t *testing.T) {
	dir := newVisits(t)
	late := visits(0, "nl")
	at := late.Column(2).(*array.Timestamp).TimestampValues()
	for _, ms := range []arrow.Timestamp{1500, -1000, 1 << 42} {
		if at[0] = ms; loadVisits(t, dir, "", nil, late) == nil {
			t.Errorf("a direct dictionary took %d ms", ms)
		}
	}
	for _, way := range []string{"", "three-pass", "all", "all:", "two-pass:x"} {
		if _, err := carbon.ParseDictionaryWay(way); err == nil {
			t.Errorf("%q: got no error, want one", way)
		}
	}
	plain := newOrders(t, carbon.TableSpec{})
	if err := loadVisits(t, plain, "two-pass", nil, orders(0, 1)); err == nil ||
		!strings.Contains(err.Error(), "dictionary_include") {
		t.Error(err)
	}
	for _, spec := range []carbon.TableSpec{
		{Properties: map[string]string{"dictionary_include": "absent"}},
		{Properties: map[string]string{"dictionary_include": "name"}, Buckets: 2, BucketBy: []string{"name"}},
		{Properties: map[string]string{"dictionary_include": "name"}, Partition: []string{"name"}},
	} {
		spec.Schema = arrow.NewSchema(orderFields, nil)
		if err := carbon.CreateTable(filepath.Join(t.TempDir(), "t"), "", spec); err == nil {
			t.Errorf("%+v: got no error, want one", spec)
		}
	}
	if err := loadVisits(t, newOrders(t, carbon.TableSpec{Partition: []string{"name"}}), "",
		map[string]string{"version": "2"}, orders(0, 1)); err == nil {
		t.Error("partitions in format 2: got no error, want one")
	}
}
