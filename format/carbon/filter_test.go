package carbon_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/pred"
	"stoa/region"
)

// TestFiltersPruneRight: a filter gives the rows that it gives over the same rows without any index or bounds (an Arrow file): every
// comparison, with values of every flat column, on every golden table, and with STOA_CORPUS on every table of format 3.
func TestFiltersPruneRight(t *testing.T) {
	var places []string
	for _, pattern := range []string{"v3/*/table", "managed/managed*"} {
		found, _ := filepath.Glob(filepath.Join(golden2, pattern))
		places = append(places, found...)
		if dir := os.Getenv("STOA_CORPUS"); dir != "" && !testing.Short() && strings.HasPrefix(pattern, "v3") {
			found, _ = filepath.Glob(filepath.Join(dir, "carbon", pattern))
			places = append(places, found...)
		}
	}
	tables, tried, kept := 0, 0, 0
	for _, p := range places {
		if info, err := os.Stat(p); err != nil || !info.IsDir() {
			continue
		}
		tables++
		a, b := prunedRight(t, p)
		tried, kept = tried+a, kept+b
	}
	t.Logf("%d tables, %d filters, %d rows kept", tables, tried, kept)
	if tables < 20 || tried < 1000 || kept == 0 {
		t.Error("too few")
	}
}

func prunedRight(t *testing.T, place string) (tried, kept int) {
	ctx := t.Context()
	tab, err := stoa.Open(ctx, place, stoa.OpenOptions{Formats: []format.Format{formats[0]}})
	if err != nil {
		t.Fatal(place, err)
	}
	defer tab.Close()
	plain := filepath.Join(t.TempDir(), "plain.arrow")
	if _, err := stoa.Convert(ctx, tab, stoa.ScanSpec{}, plain, stoa.CreateOptions{}); err != nil {
		t.Fatal(place, err)
	}
	same, err := stoa.Open(ctx, plain, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(place, err)
	}
	defer same.Close()
	_, all, err := read(t, place, stoa.OpenOptions{}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(place, err)
	}
	for _, f := range tab.Schema().Fields() {
		if arrow.IsNested(f.Type.ID()) {
			continue
		}
		for _, where := range comparisons(f, all) {
			e, err := pred.Parse(where)
			if err != nil {
				t.Fatal(where, err)
			}
			got, want := rowsOf(t, tab, f.Name, e), rowsOf(t, same, f.Name, e)
			if got != want {
				t.Errorf("%s where %s: %d rows, not %d", place, where, got, want)
			}
			tried, kept = tried+1, kept+got
		}
	}
	return tried, kept
}

// comparisons are filters on a column with some of its values.
func comparisons(f arrow.Field, all []line) (out []string) {
	seen := map[string]bool{}
	for i := 0; i < len(all) && len(seen) < 2; i += 1 + len(all)/20 {
		v := all[i][f.Name]
		if seen[v] || v == "null" || strings.Contains(v, "NaN") || strings.Contains(v, "Inf") {
			continue
		}
		seen[v] = true
		is := literal(f, v)
		out = append(out, is, "not ("+is+")")
		for _, op := range []string{"<>", "<", "<=", ">", ">="} {
			out = append(out, strings.Replace(is, `" = `, `" `+op+" ", 1))
		}
	}
	return append(out, `"`+f.Name+`" is null`, `"`+f.Name+`" is not null`)
}

func rowsOf(t *testing.T, tab *stoa.Table, column string, e *pred.Expr) (n int) {
	t.Helper()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{column}, Filter: e}) {
		if err != nil {
			t.Fatal(column, err)
		}
		n += int(b.NumRows())
	}
	return n
}

// TestOddIndex: an index file that parses, and says what none of the table can (one bit was turned: a column's id, a field's number), is
// told and not believed: every row is there, with a filter and without.
func TestOddIndex(t *testing.T) {
	for _, x := range []struct {
		file  string
		at    int
		bit   int
		where string
	}{
		{"Segment_0/0_1795249937993.carbonindexmerge", 184, 3, "d > date '2020-01-10'"},
		{"Segment_0/0_1795249937993.carbonindexmerge", 428, 7, "id > 20"},
		{"Segment_2/2_1795249939344.carbonindexmerge", 707, 7, "id > 20"}, // names no data file any more
	} {
		tree := loaded(t, filepath.Join(golden2, "managed/managed1"))
		e, err := pred.Parse(x.where)
		if err != nil {
			t.Fatal(err)
		}
		var right [2][]line
		for i, spec := range []stoa.ScanSpec{{}, {Filter: e}} {
			if _, right[i], err = read(t, "t", stoa.OpenOptions{Tree: tree}, spec); err != nil || len(right[i]) == 0 {
				t.Fatal(err)
			}
		}
		name := "t/Fact/Part0/" + x.file
		b := bytes.Clone(tree.Bytes(name))
		b[x.at] ^= 1 << x.bit
		tree.Put(name, b)
		for i, spec := range []stoa.ScanSpec{{}, {Filter: e}} {
			if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, spec); err != nil || differ(rows, right[i], true) != "" {
				t.Errorf("%s, byte %d: %v %s", x.file, x.at, err, differ(rows, right[i], true))
			}
		}
		var found []region.Finding
		for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
			found = append(found, f)
		}
		if !has(found, "carbon.index.damaged") {
			t.Errorf("%s, byte %d: verify says %v", x.file, x.at, found)
		}
	}
}
