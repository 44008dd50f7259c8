package laws_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/pred"
)

// valueAt returns a cell as a value of predicates, for the types that it knows.
func valueAt(a arrow.Array, i int) (v pred.Value, known bool) {
	switch a := a.(type) {
	case *array.Int64:
		return pred.Int(a.Value(i)), true
	case *array.Int32:
		return pred.Int(int64(a.Value(i))), true
	case *array.String:
		return pred.String(a.Value(i)), true
	case *array.Date32:
		return pred.Date(int64(a.Value(i))), true
	case *array.Float64:
		return pred.Float(a.Value(i)), true
	}
	return v, false
}

// factsSeen counts what the facts of splits were compared with.
type factsSeen struct{ exact, bounds, occurring, nulls, keys int }

// checkFacts compares what a split says about its rows with the rows.
func checkFacts(t *testing.T, name string, s stoa.Split, seen *factsSeen) (rows []string) {
	t.Helper()
	part, err := stoa.OpenSplit(context.Background(), s, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(name, err)
	}
	defer part.Close()
	found, nulls, others := map[string]map[pred.Value]bool{}, map[string]int64{}, map[string]bool{}
	for b, err := range part.Scan(context.Background(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(name, err)
		}
		rows = append(rows, textOf(b)...)
		for i, f := range b.Schema().Fields() {
			if found[f.Name] == nil {
				found[f.Name] = map[pred.Value]bool{}
			}
			for k := range int(b.NumRows()) {
				if b.Column(i).IsNull(k) {
					nulls[f.Name]++
				} else if v, ok := valueAt(b.Column(i), k); ok {
					found[f.Name][v] = true
				} else {
					others[f.Name] = true
				}
			}
		}
	}
	if s.Exact {
		if seen.exact++; int64(len(rows)) != s.Rows {
			t.Errorf("%s: split %d has %d rows, and says exactly %d", name, s.N, len(rows), s.Rows)
		}
	}
	for c, b := range s.Bounds {
		if b.Nulls >= 0 {
			if seen.nulls++; nulls[c] != b.Nulls {
				t.Errorf("%s: split %d, column %s: %d nulls, said to be %d", name, s.N, c, nulls[c], b.Nulls)
			}
		}
		if b.Min == nil || others[c] {
			continue
		}
		low, high := false, false
		for v := range found[c] {
			below, ok := pred.Compare(v, *b.Min)
			above, ok2 := pred.Compare(v, *b.Max)
			if !ok || !ok2 || below < 0 || above > 0 {
				t.Fatalf("%s: split %d, column %s: %s is not from %s to %s", name, s.N, c, v, b.Min, b.Max)
			}
			seen.bounds++
			low, high = low || below == 0, high || above == 0
		}
		if b.Exact {
			if seen.occurring++; !low || !high {
				t.Errorf("%s: split %d, column %s: %s and %s do not occur", name, s.N, c, b.Min, b.Max)
			}
		}
	}
	for c, v := range s.Keys {
		if seen.keys++; nulls[c] > 0 || len(found[c]) > 1 || len(found[c]) == 1 && !found[c][v] {
			t.Errorf("%s: split %d, key %s is not always %s: %v", name, s.N, c, v, found[c])
		}
	}
	return rows
}

// factPlaces are tables with statistics of many kinds, written here and by real systems.
func factPlaces(t *testing.T) []string {
	out := splitPlaces(t)
	dir := t.TempDir()
	for _, p := range []struct {
		to   string
		opts map[string]string
	}{{"redfile", nil}, {"trevni", nil}, {"trevni-avro", nil}, {"carbon", map[string]string{"sort-columns": "n"}},
		{"cfile", map[string]string{"value-index.n": "true"}},
		{"parquet", map[string]string{"row-group-rows": "900"}}} {
		place := filepath.Join(dir, p.to)
		w, err := stoa.Create(context.Background(), place+"/", splitRows(0).Schema(),
			stoa.CreateOptions{To: p.to, Opts: p.opts})
		if err == nil {
			if err = w.Write(context.Background(), splitRows(5000)); err == nil {
				_, err = w.Close(context.Background())
			}
		}
		if err != nil {
			t.Fatal(p.to, err)
		}
		out = append(out, place)
	}
	return append(out, "format/kudu/testdata/file#autoinc",
		"corpus/carbon/2.3.0/managed#managed1", "corpus/carbon/2.3.0/managed#managed_del",
		"corpus/carbon/2.3.0/managed#managed_part", "corpus/redfile/red1/flat_pages.red")
}

// TestFactsOfSplits: exact numbers of rows are those of the rows, no value is out of bounds, exact bounds occur,
// nulls are as many as is said, keys are the only value; and the shares of several planners are the scan.
func TestFactsOfSplits(t *testing.T) {
	var seen factsSeen
	ctx := context.Background()
	for _, place := range factPlaces(t) {
		table, err := stoa.Open(ctx, place, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(place, err)
		}
		defer table.Close()
		first := table.Schema().Field(0).Name
		wheres := []string{"", first + " is not null", first + " >= 0", first + " > 50", first + " is null"}
		if testing.Short() {
			wheres = []string{"", first + " is not null", first + " > 50"}
		}
		for _, where := range wheres {
			spec := stoa.ScanSpec{}
			if where != "" {
				if spec.Filter, err = pred.Parse(where); err != nil {
					t.Fatal(err)
				}
			}
			for _, target := range []int64{4000, 1 << 30} {
				var got []string
				name := fmt.Sprintf("%s where %s, %d", filepath.Base(place), where, target)
				for s, err := range table.PlanBy(ctx, spec, stoa.PlanOptions{Target: target, Apart: target > 4000}) {
					if err != nil {
						t.Fatal(name, err)
					}
					got = append(got, checkFacts(t, name, s, &seen)...)
				}
				if want := rowsOf(t, table.Scan(ctx, spec)); !slices.Equal(got, want) {
					t.Errorf("%s: %d rows, expected %d", name, len(got), len(want))
				}
			}
		}
	}
	if seen.exact < 30 || seen.bounds < 5000 || seen.occurring < 10 || seen.nulls < 20 {
		t.Errorf("too little was compared: %+v", seen)
	}
	t.Logf("%+v", seen)
}

// TestSharesOfAPlan: what several planners plan, one after the other, is the scan, also if there are more planners than
// files.
func TestSharesOfAPlan(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "set"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		w, err := stoa.Create(ctx, filepath.Join(dir, "set", fmt.Sprintf("%d.parquet", i)), splitRows(0).Schema(),
			stoa.CreateOptions{})
		if err == nil {
			if err = w.Write(ctx, splitRows(30*i)); err == nil {
				_, err = w.Close(ctx)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set := filepath.Join(dir, "set")
	for _, uris := range [][]string{{set}, {set + "/*.parquet"}, {set + "/1.parquet", set + "/2.parquet"},
		{set + "/6.parquet"}, {"corpus/carbon/2.3.0/managed#managed_part"}, {"format/kudu/testdata/file#autoinc"}} {
		whole, err := stoa.OpenAll(ctx, uris, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(uris, err)
		}
		want := rowsOf(t, whole.Scan(ctx, stoa.ScanSpec{}))
		whole.Close()
		for _, of := range []int{1, 2, 3, 7, 20} {
			var got []string
			most := 0
			for n := range of {
				table, err := stoa.OpenAll(ctx, uris, stoa.OpenOptions{Share: stoa.Share{N: n, Of: of}})
				if err != nil {
					t.Fatal(uris, err)
				}
				most = max(most, len(table.Sources()))
				for s, err := range table.Plan(ctx, stoa.ScanSpec{}, 1<<30) {
					if err != nil {
						t.Fatal(uris, err)
					}
					got = append(got, checkFacts(t, uris[0], s, &factsSeen{})...)
				}
				table.Close()
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v in %d shares: %d rows, expected %d", uris, of, len(got), len(want))
			}
			if len(uris) == 1 && filepath.Base(uris[0]) == "set" && most > (7+of-1)/of {
				t.Errorf("%v in %d shares: one opens %d files", uris, of, most)
			}
		}
	}
	if _, err := stoa.Open(ctx, set, stoa.OpenOptions{Share: stoa.Share{N: 3, Of: 3}}); err == nil {
		t.Error("share 3 of 3 was opened")
	}
}
