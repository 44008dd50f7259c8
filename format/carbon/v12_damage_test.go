package carbon_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// goldenFiles reads a golden table into memory.
func goldenFiles(t testing.TB, name string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	root := filepath.Join(goldenV12, name)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		files[path.Join("t", filepath.ToSlash(rel))] = b
		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatal(len(files), err)
	}
	return files
}

// without returns the files whose names have none of the endings.
func without(files map[string][]byte, ends ...string) map[string][]byte {
	out := map[string][]byte{}
	for name, b := range files {
		if !slices.ContainsFunc(ends, func(e string) bool { return strings.HasSuffix(name, e) }) {
			out[name] = b
		}
	}
	return out
}

func ending(t testing.TB, files map[string][]byte, end string) string {
	t.Helper()
	for name := range files {
		if strings.HasSuffix(name, end) {
			return name
		}
	}
	t.Fatal("no file ends in " + end)
	return ""
}

func memory(files map[string][]byte, g goldenTable) stoa.OpenOptions {
	o := g.options()
	o.Tree = store.NewMemory(files)
	return o
}

// columnOf returns the cells of one column.
func columnOf(rows []line, name string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r[name]
	}
	return out
}

// TestMissingDictionary: a missing dictionary loses its column and nothing else.
func TestMissingDictionary(t *testing.T) {
	for _, g := range goldenTables(t).Tables {
		files := goldenFiles(t, g.Table)
		_, whole, err := read(t, "t", memory(files, g), stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		less := memory(without(files, "0001.dict"), g) // of the column code
		if _, _, err := read(t, "t", less, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) ||
			!strings.Contains(err.Error(), "0001.dict") {
			t.Errorf("%s: got %v, want an error that names the dictionary", g.Table, err)
		}
		_, rows, err := read(t, "t", less, stoa.ScanSpec{Columns: []string{"country", "id", "m_dec"}})
		if err != nil || !slices.Equal(columnOf(rows, "country"), columnOf(whole, "country")) {
			t.Errorf("%s: got other columns lost: %v", g.Table, err)
		}
		var lost []region.Loss
		_, rows, err = read(t, "t", less,
			stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(l region.Loss) { lost = append(lost, l) }})
		if err != nil || len(rows) != g.Rows || len(lost) == 0 {
			t.Fatalf("%s: %v, %d rows, %d losses", g.Table, err, len(rows), len(lost))
		}
		for i, r := range rows {
			if r["code"] != "null" || r["name"] != whole[i]["name"] {
				t.Fatalf("%s: row %d: %v", g.Table, i, r)
			}
		}
	}
}

// TestMissingDictionaryOfAnItem: a missing dictionary of a list's items loses the list.
func TestMissingDictionaryOfAnItem(t *testing.T) {
	g := goldenTables(t).Tables[0]
	files := goldenFiles(t, g.Table)
	_, whole, err := read(t, "t", memory(files, g), stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	less := memory(without(files, "0007.dict"), g) // of arr.val
	if _, _, err := read(t, "t", less, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) ||
		!strings.Contains(err.Error(), "0007.dict") {
		t.Errorf("got %v, want an error that names the dictionary", err)
	}
	lost := 0
	_, rows, err := read(t, "t", less, stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(region.Loss) { lost++ }})
	if err != nil || len(rows) != g.Rows || lost == 0 {
		t.Fatalf("%v, %d rows, %d losses", err, len(rows), lost)
	}
	for i, r := range rows {
		if r["arr"] != "null" || r["st"] != whole[i]["st"] || r["code"] != whole[i]["code"] {
			t.Fatalf("row %d: %v, want %v without arr", i, r, whole[i])
		}
	}
}

// TestLoneFile: a data file or segment inside its table's directory finds the dictionaries; a copy elsewhere loses the
// columns that need them.
func TestLoneFile(t *testing.T) {
	for _, g := range goldenTables(t).Tables {
		files := goldenFiles(t, g.Table)
		data := ending(t, files, ".carbondata")
		for _, place := range []string{data, path.Dir(data)} {
			_, rows, err := read(t, place, stoa.OpenOptions{Tree: store.NewMemory(files)}, stoa.ScanSpec{})
			if err != nil || digest(rows) != g.SHA256 {
				t.Errorf("%s: %v", place, err)
			}
		}
		alone := stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"x.carbondata": files[data]})}
		_, rows, err := read(t, "x.carbondata", alone, stoa.ScanSpec{Columns: []string{"id", "name", "ts"}})
		if err != nil || len(rows) != g.Rows {
			t.Errorf("%s alone: %d rows, %v", g.Table, len(rows), err)
		}
		if _, _, err := read(t, "x.carbondata", alone, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) ||
			!strings.Contains(err.Error(), ".dict") {
			t.Errorf("%s alone: %v", g.Table, err)
		}
	}
}

// TestTornDictionary: values after the last finished load are not read; truncation loses only the codes after the cut.
func TestTornDictionary(t *testing.T) {
	g := goldenTables(t).Tables[1]
	files := goldenFiles(t, g.Table)
	_, whole, err := read(t, "t", memory(files, g), stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	dict := ending(t, files, "0000.dict") // dictionary of the column country: 41 values in one chunk
	for _, tail := range []string{"\x19\x28\x03abc\x03d", "\x19\x18\x03xyz\x00", "\xff"} {
		torn := without(files)
		torn[dict] = append(slices.Clone(files[dict]), tail...)
		_, rows, err := read(t, "t", memory(torn, g), stoa.ScanSpec{})
		if err != nil || !slices.Equal(columnOf(rows, "country"), columnOf(whole, "country")) {
			t.Errorf("tail %q: %v", tail, err)
		}
	}
	cut := without(files)
	cut[dict] = files[dict][:100]
	_, rows, err := read(t, "t", memory(cut, g), stoa.ScanSpec{Columns: []string{"country"}})
	if !errors.Is(err, fault.Corrupt) || len(rows) > 0 {
		t.Errorf("got %d rows, %v, from a truncated dictionary, want an error", len(rows), err)
	}
	two := without(files) // cut inside a second load: the first load's codes remain valid
	two[dict] = append(slices.Clone(files[dict]), "\x19\x18\x03xy"...)
	meta := strings.TrimSuffix(dict, ".dict") + ".dictmeta"
	// code 42, bytes 137 to 144
	two[meta] = append(slices.Clone(files[meta]), 0x15, 84, 0x15, 84, 0x16, 0x92, 0x02, 0x16, 0xa0, 0x02, 0x15, 2, 0)
	_, rows, err = read(t, "t", memory(two, g), stoa.ScanSpec{})
	if err != nil || !slices.Equal(columnOf(rows, "country"), columnOf(whole, "country")) {
		t.Errorf("a truncated second load: %v", err)
	}
}

// TestDictionaryTables reads the three files of a dictionary as tables. The expected numbers come from another parser.
func TestDictionaryTables(t *testing.T) {
	dir := filepath.Join(goldenV12, "v2_b2000", "Metadata", "12345678-0000-4000-8000-000000000004")
	for _, c := range []struct{ end, want string }{
		{".dict", `code=1 load=0 value=null |code=2 load=0 value="w2" |code=3 load=0 value="w0" |code=4 load=0 ` +
			`value="w1" `},
		{".dictmeta", `chunk_count=1 end_offset=21 load=0 max_surrogate_key=4 min_surrogate_key=1 start_offset=0 `},
		{"_21.sortindex", `position=1 sort_index=1 sort_index_inverted=1 |position=2 sort_index=3 ` +
			`sort_index_inverted=4 |` +
			`position=3 sort_index=4 sort_index_inverted=2 |position=4 sort_index=2 sort_index_inverted=3 `},
	} {
		_, rows, err := read(t, dir+c.end, stoa.OpenOptions{}, stoa.ScanSpec{})
		var got []string
		for _, r := range rows {
			got = append(got, r.String())
		}
		if err != nil || strings.Join(got, "|") != c.want {
			t.Errorf("%s: %v\n%s\n%s", c.end, err, strings.Join(got, "|"), c.want)
		}
	}
}

// TestOldFilters: a filter selects the same rows as selecting from a full scan, through bounds, dictionaries and sort
// indexes, even if a sort index is damaged or missing.
func TestOldFilters(t *testing.T) {
	for _, g := range goldenTables(t).Tables {
		files := goldenFiles(t, g.Table)
		_, whole, err := read(t, "t", memory(files, g), stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		bad := without(files)
		sort := ending(t, files, "1104.sortindex")
		bad[sort] = slices.Clone(files[sort])
		bad[sort][40] ^= 6
		for how, o := range map[string]stoa.OpenOptions{"": memory(files, g),
			"no sort index": memory(without(files, ".sortindex"), g), "damaged sort index": memory(bad, g)} {
			for _, f := range []struct {
				where string
				keep  func(r line) bool
			}{
				{"country = 'wg'", func(r line) bool { return r["country"] == `"wg"` }},
				{"country > 'wt'", func(r line) bool { return r["country"] != "null" && r["country"] > `"wt"` }},
				{"country < 'w'", func(r line) bool { return false }},
				{"country is null", func(r line) bool { return r["country"] == "null" }},
				{"code between 5 and 9", func(r line) bool { return len(r["code"]) == 1 && r["code"] >= "5" }},
				{"code = 299", func(r line) bool { return r["code"] == "299" }},
				{"code > 100000", func(r line) bool { return false }},
				{"noinv in ('w0', 'w9')", func(r line) bool { return r["noinv"] == `"w0"` }},
				{"day < date '1991-02-03'", func(r line) bool { return r["day"] != "null" && r["day"] < "1991-02-03" }},
				{"ts >= timestamp '2016-12-01T00:00:00Z'",
					func(r line) bool { return r["ts"] != "null" && r["ts"] >= "2016-12-01" }},
				{"name like 'n4%'", func(r line) bool { return strings.HasPrefix(r["name"], `"n4`) }},
				{"name >= 'nz' and m_short > 0", func(r line) bool {
					return r["name"] != "null" && r["name"] >= `"nz` && r["m_short"] != "null" &&
						r["m_short"][0] != '-' && r["m_short"] != "0"
				}},
			} {
				e, err := pred.Parse(f.where)
				if err != nil {
					t.Fatal(err)
				}
				var want []line
				for _, r := range whole {
					if f.keep(r) {
						want = append(want, r)
					}
				}
				_, got, err := read(t, "t", o, stoa.ScanSpec{Filter: e})
				if err != nil {
					t.Errorf("%s %s, %s: %v", g.Table, how, f.where, err)
				} else if d := differ(got, want, false); d != "" {
					t.Errorf("%s %s, %s: %s", g.Table, how, f.where, d)
				}
			}
		}
	}
}

// TestOldFormatWindows: batches of any size and ranges of rows return the same rows.
func TestOldFormatWindows(t *testing.T) {
	for _, g := range goldenTables(t).Tables {
		o := memory(goldenFiles(t, g.Table), g)
		_, whole, err := read(t, "t", o, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{7, 999, 2000, 2001} {
			_, got, err := read(t, "t", o, stoa.ScanSpec{Batch: n})
			if err != nil || differ(got, whole, false) != "" {
				t.Errorf("%s: batches of %d: %v %s", g.Table, n, err, differ(got, whole, false))
			}
		}
		_, got, err := read(t, "t", o, stoa.ScanSpec{Parallel: 4, Batch: 500})
		if err != nil || differ(got, whole, false) != "" {
			t.Errorf("%s: four workers: %v %s", g.Table, err, differ(got, whole, false))
		}
		_, got, err = read(t, "t", o, stoa.ScanSpec{Rows: vec.Range{From: 1990, To: 2010}})
		if err != nil || differ(got, whole[1990:2010], false) != "" {
			t.Errorf("%s: rows 1990 to 2010: %v %s", g.Table, err, differ(got, whole[1990:2010], false))
		}
	}
	g := goldenTables(t).Tables[0]
	_, whole, _ := read(t, "t", memory(goldenFiles(t, g.Table), g), stoa.ScanSpec{})
	_, got, err := read(t, "t", memory(goldenFiles(t, g.Table), g), stoa.ScanSpec{Columns: []string{"st.b", "id"}})
	if err != nil || len(got) != len(whole) {
		t.Fatal(err)
	}
	for i, r := range got {
		if w := whole[i]["st"]; w != "null" && !strings.HasSuffix(w, ","+r["st.b"]+"}") {
			t.Fatalf("row %d: %v, want the b of %s", i, r, w)
		}
	}
}

// TestBlockletSize: with the property the width is known; a wrong value is detected.
func TestBlockletSize(t *testing.T) {
	for _, g := range goldenTables(t).Tables {
		for size, ok := range map[int]bool{g.Blocklet: true, 500000: false} {
			o := memory(goldenFiles(t, g.Table), g)
			o.Opts = map[string]string{"blocklet-size": fmt.Sprint(size)}
			if g.Segment != "" {
				o.Opts["segment"] = g.Segment
			}
			_, rows, err := read(t, "t", o, stoa.ScanSpec{})
			if ok && (err != nil || digest(rows) != g.SHA256) || !ok && !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s, blocklet size %d: %v", g.Table, size, err)
			}
		}
	}
}

var v12Tight = format.Limits{Page: 8 << 20, Metadata: 4 << 20}

// tryV12 reads a whole damaged table under the policy that continues after damage, and checks the errors.
func tryV12(t *testing.T, what string, files map[string][]byte, g goldenTable) (changed bool, reported bool) {
	t.Helper()
	o := memory(files, g)
	o.Limits = v12Tight
	losses := 0
	_, rows, err := read(t, "t", o, stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(region.Loss) { losses++ }})
	var e *fault.Error
	if err != nil && (!errors.As(err, &e) || e.Class == fault.Bug || e.Class == fault.Invalid || e.At.Object == "") {
		t.Errorf("%s: %T %v", what, err, err)
	}
	return err != nil || digest(rows) != g.SHA256, err != nil || losses > 0
}

// TestV1V2Damage flips bits and truncates. The data has no checksums, so results may change. But nothing panics, hangs
// or allocates without bounds, errors have places, and contradictions between structures are detected.
func TestV1V2Damage(t *testing.T) {
	tries := 60
	if testing.Short() {
		tries = 20
	}
	if os.Getenv("STOA_LONG") != "" {
		tries = 3000
	}
	for _, g := range goldenTables(t).Tables {
		files := goldenFiles(t, g.Table)
		data := ending(t, files, ".carbondata")
		n := len(files[data])
		foot := int(binary.BigEndian.Uint64(files[data][n-8:]))
		r := rand.New(rand.NewPCG(7, uint64(n)))
		unnoticed := map[string]int{}
		for i := range tries {
			bad := without(files)
			b := slices.Clone(files[data])
			where, at := "data", r.IntN(foot)
			if i%2 == 0 {
				where, at = "footer", foot+r.IntN(n-foot)
			}
			b[at] ^= 1 << r.IntN(8)
			bad[data] = b
			if changed, reported := tryV12(t, fmt.Sprintf("%s: bit of byte %d", g.Table, at), bad, g); changed &&
				!reported {
				unnoticed[where]++
			}
		}
		t.Logf("%s: of %d flipped bits in data and as many at the end of the file, %v change the result "+
			"without an error",
			g.Table, tries/2, unnoticed)
		for i := range tries / 4 {
			bad := without(files)
			bad[data] = files[data][:r.IntN(n)]
			if i == 0 {
				bad[data] = nil
			}
			if _, reported := tryV12(t, fmt.Sprintf("%s: cut at %d", g.Table, len(bad[data])), bad, g); !reported {
				t.Errorf("%s: truncated to %d: got no error, want one", g.Table, len(bad[data]))
			}
		}
	}
}

// TestDictionaryDamage flips every bit of the files of a dictionary.
func TestDictionaryDamage(t *testing.T) {
	g := goldenTables(t).Tables[1]
	files := goldenFiles(t, g.Table)
	e, err := pred.Parse("country > 'wt'")
	if err != nil {
		t.Fatal(err)
	}
	_, right, err := read(t, "t", memory(files, g), stoa.ScanSpec{Columns: []string{"country"}, Filter: e})
	if err != nil || len(right) == 0 {
		t.Fatal(len(right), err)
	}
	for _, end := range []string{"0000.dict", "0000.dictmeta", "0000_137.sortindex"} {
		name := ending(t, files, end)
		unnoticed := 0
		for at := range len(files[name]) {
			bad := without(files)
			bad[name] = slices.Clone(files[name])
			bad[name][at] ^= 1 << (at % 8)
			o := memory(bad, g)
			o.Limits = v12Tight
			_, rows, err := read(t, "t", o, stoa.ScanSpec{Columns: []string{"country"}, Filter: e})
			var fe *fault.Error
			if err != nil && (!errors.As(err, &fe) || fe.Class != fault.Corrupt && fe.Class != fault.Limit &&
				fe.Class != fault.Unsupported || fe.At.Object == "") {
				t.Errorf("%s, byte %d: %v", end, at, err)
			}
			if err == nil && end != "0000.dict" && digest(rows) != digest(right) {
				unnoticed++
			}
		}
		if unnoticed > 0 {
			t.Errorf("%s: got %d flipped bits with another result and no error, want none: the order is "+
				"checked against the values", end, unnoticed)
		}
	}
}
