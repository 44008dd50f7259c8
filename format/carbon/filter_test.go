package carbon_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/pred"
	"stoa/region"
)

// TestFiltersPruneRight: a filter selects the same rows as from an Arrow file of the same rows, which has no index and
// no bounds: every comparison, with values of every flat column, on every golden table, and with STOA_CORPUS on every
// table of format 3.
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
	for _, pattern := range []string{filepath.Join(goldenV12, "v*"),
		filepath.Join(os.Getenv("STOA_CORPUS"), "carbon/v[12]/*/default/old_*")} {
		if found, _ := filepath.Glob(pattern); !testing.Short() || strings.HasPrefix(pattern, goldenV12) {
			// format 1 and 2: global dictionaries, sort indexes, an inverted index in each page
			places = append(places, found...)
		}
	}
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
		t.Error("got too few filters or rows")
	}
}

// partOf returns the options for a golden table of formats 1 and 2, of which the repository has only the first segment.
func partOf(place string) map[string]string {
	if strings.HasPrefix(place, goldenV12) {
		return map[string]string{"segments": "0"}
	}
	return nil
}

func prunedRight(t *testing.T, place string) (tried, kept int) {
	ctx := t.Context()
	options := stoa.OpenOptions{Formats: formats[:1], Opts: partOf(place)}
	tab, err := stoa.Open(ctx, place, options)
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
	_, all, err := read(t, place, options, stoa.ScanSpec{})
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
				t.Errorf("%s where %s: got %d rows, want %d", place, where, got, want)
			}
			tried, kept = tried+1, kept+got
		}
	}
	return tried, kept
}

// comparisons returns filters that compare a column with some of its values.
func comparisons(f arrow.Field, all []line) (out []string) {
	seen, last := map[string]bool{}, ""
	for i := 0; i < len(all) && len(seen) < 2; i += 1 + len(all)/20 {
		v := all[i][f.Name]
		if seen[v] || v == "null" || strings.Contains(v, "NaN") || strings.Contains(v, "Inf") {
			continue
		}
		is := literal(f, v)
		value := strings.TrimPrefix(is, `"`+f.Name+`" = `)
		out = append(out, is, "not ("+is+")")
		if last != "" {
			out = append(out, fmt.Sprintf(`"%s" in (%s, %s)`, f.Name, last, value),
				fmt.Sprintf(`"%s" not in (%s, %s)`, f.Name, value, last),
				fmt.Sprintf(`"%s" between %s and %s`, f.Name, last, value),
				fmt.Sprintf(`"%[1]s" = %[2]s or "%[1]s" > %[3]s`, f.Name, last, value),
				fmt.Sprintf(`"%[1]s" >= %[2]s and "%[1]s" <> %[2]s`, f.Name, value))
		}
		if k := strings.IndexByte(value, '\''); f.Type.ID() == arrow.STRING && len(value) > k+3 && value[k+1] < 0x80 {
			out = append(out, fmt.Sprintf(`"%s" like '%c%%'`, f.Name, value[k+1]),
				fmt.Sprintf(`"%s" not like '%c%%'`, f.Name, value[k+1]))
		}
		seen[v], last = true, value
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

// TestMeans: filters use the indexes and bounds of formats 1 to 3, as explain reports, and select the expected rows.
func TestMeans(t *testing.T) {
	const inverted, codes, order = "inverted index", "codes compared, the dictionary tested once",
		"order of the dictionary"
	v2, v3 := filepath.Join(goldenV12, "v2_b2000"), filepath.Join(golden2, "v3")
	for _, x := range []struct {
		place, where, column string
		why, used            string
		n                    int64 // row groups or pages
	}{
		{v2, "country = 'w3'", "country", "", codes, 1}, // the first sort column: its pages need no index
		{v2, "country = 'w3'", "", order, "", 2},
		{v2, "country in ('w3', 'nowhere')", "", order, "", 2},
		{v2, "code = 17", "code", "", inverted, 3},
		{v2, "code in (17, 18) and m_const = 7", "code", "", inverted, 3},
		{v2, "name = 'n10080ntl3'", "name", "", inverted, 3},
		{v2, "name between 'n2' and 'n3'", "name", "", inverted, 3},
		{v2, "name like 'n2%' and not name like '%7%'", "name", "", inverted, 3},
		{filepath.Join(v3, "lowcard_inv/table"), "country < 'b'", "country", "", inverted, 1},
		{filepath.Join(v3, "lowcard_inv/table"), "country = 'no such'", "country",
			"no value of the dictionary passes", "", 1},
	} {
		tab, err := stoa.Open(t.Context(), x.place, stoa.OpenOptions{Formats: formats[:1], Opts: partOf(x.place)})
		if err != nil {
			t.Fatal(x.place, err)
		}
		e, err := pred.Parse(x.where)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tab.Explain(t.Context(), stoa.ScanSpec{Filter: e}, true)
		if err != nil {
			t.Fatal(x.where, err)
		}
		seen := false
		for _, l := range got.Levels {
			if l.Column == x.column && (x.column != "" || l.Level == format.LevelGroup) {
				seen = slices.Contains(l.Skipped, stoa.Reason{Why: x.why, N: x.n}) ||
					slices.Contains(l.Used, stoa.Reason{Why: x.used, N: x.n})
			}
		}
		if !seen {
			t.Errorf("%s where %s: %+v", x.place, x.where, got.Levels)
		}
		tab.Close()
	}
}

// TestCutDictionary: the values after the end of a truncated dictionary are unknown, so no filter may rule out rows
// that have them.
func TestCutDictionary(t *testing.T) {
	const id = "t/Metadata/12345678-0000-4000-8000-00000000000"
	for _, x := range []struct{ column, where string }{{"1", "code = 123456"}, {"1", "code > 123456"},
		{"0", "country = 'nowhere'"}, {"0", "country in ('nowhere', 'elsewhere')"}} {
		tree := loaded(t, filepath.Join(goldenV12, "v2_b2000"))
		e, err := pred.Parse(x.where)
		if err != nil {
			t.Fatal(err)
		}
		open := stoa.OpenOptions{Tree: tree, Opts: map[string]string{"segments": "0"}}
		if _, rows, err := read(t, "t", open, stoa.ScanSpec{Filter: e}); err != nil || len(rows) != 0 {
			t.Fatalf("%s: %d rows, %v", x.where, len(rows), err)
		}
		name := id + x.column + ".dict"
		tree.Put(name, tree.Bytes(name)[:len(tree.Bytes(name))*2/3])
		if _, rows, err := read(t, "t", open, stoa.ScanSpec{Filter: e}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s with a truncated dictionary: got %d rows, %v", x.where, len(rows), err)
		}
	}
}

// TestCutLoad: the same if truncation removes the second of two loads. The values of the first load are known, and none
// of them passes, but pages of the second segment have codes that may stand for the value.
func TestCutLoad(t *testing.T) {
	for version := 1; version <= 3; version++ {
		dir := newVisits(t)
		o := map[string]string{"version": fmt.Sprint(version)}
		if err := loadVisits(t, dir, "", o, visits(0, "nl", "fra")); err != nil {
			t.Fatal(err)
		}
		dicts, err := filepath.Glob(filepath.Join(dir, "Metadata", "*.dict"))
		if err != nil || len(dicts) != 2 {
			t.Fatal(dicts, err)
		}
		first := map[string]int64{}
		for _, d := range dicts {
			info, err := os.Stat(d)
			if err != nil {
				t.Fatal(err)
			}
			first[d] = info.Size()
		}
		if err := loadVisits(t, dir, "", o, visits(2, "sweden", "belgium")); err != nil {
			t.Fatal(err)
		}
		wheres := []string{"country = 'nowhere'", "country in ('nowhere', 'elsewhere')", "country > 'x'",
			"country like 'x%'", "code = 123456", "code > 123456", "country = 'sweden'", "code = 6"}
		for i, where := range wheres {
			if n := countWhere(t, dir, where); n != i/6 {
				t.Errorf("version %d, %s: %d rows", version, where, n)
			}
		}
		for d, n := range first {
			if err := os.Truncate(d, n); err != nil {
				t.Fatal(err)
			}
		}
		for _, segments := range []string{"0,1", "1"} {
			for _, where := range wheres {
				e, err := pred.Parse(where)
				if err != nil {
					t.Fatal(err)
				}
				if _, rows, err := read(t, dir, stoa.OpenOptions{Opts: map[string]string{"segments": segments}},
					stoa.ScanSpec{Filter: e}); !errors.Is(err, fault.Corrupt) {
					t.Errorf("version %d, segments %q, %s with dictionaries truncated after the first load: got %d "+
						"rows, %v",
						version, segments, where, len(rows), err)
				}
			}
			_, rows, err := read(t, dir, stoa.OpenOptions{Opts: map[string]string{"segments": "0"}}, stoa.ScanSpec{})
			if err != nil || len(rows) != 2 {
				t.Errorf("version %d: the first segment has %d rows, %v", version, len(rows), err)
			}
		}
	}
}

// TestOddIndex: an index file that can be parsed but matches nothing in the table (one flipped bit in a column's id or
// a field's number) is reported and not used: filters and scans return every row.
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
			if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, spec); err != nil ||
				differ(rows, right[i], true) != "" {
				t.Errorf("%s, byte %d: %v %s", x.file, x.at, err, differ(rows, right[i], true))
			}
		}
		var found []region.Finding
		for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
			found = append(found, f)
		}
		if !has(found, "carbon.index.damaged") {
			t.Errorf("%s, byte %d: verify: got %v", x.file, x.at, found)
		}
	}
}
