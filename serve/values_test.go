package serve_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/cmd/stoa/verbs"
	"stoa/serve"
)

// lines is a file of n rows: k counts up, m is k modulo 7 and null where that is 3.
func lines(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("k,m\n")
	for k := range n {
		if k%7 == 3 {
			fmt.Fprintf(&b, "%d,\n", k)
		} else {
			fmt.Fprintf(&b, "%d,%d\n", k, k%7)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	status, _ := verbs.Run(t.Context(), []string{"convert", "-q", filepath.Join(dir, "t.csv"),
		"--source-opt", "header=true",
		"-o", filepath.Join(dir, "t.parquet"), "--opt", "row-group-rows=100"}, nil, &bytes.Buffer{}, &errs)
	if status != 0 {
		t.Fatal(errs.String())
	}
	return dir
}

// TestValues: what is counted of a column is what was written: 1,000 rows, of which 143 (k = 3, 10, …, 997) are null.
func TestValues(t *testing.T) {
	dir := lines(t, 1000)
	s := newServer(t, nil, dir)
	type doc struct {
		Rows, Nulls, Distinct int64
		Top                   []struct {
			Value string
			N     int64
		}
		Histogram struct {
			What     string
			From, To float64
			Counts   []int64
		}
		Bands []struct {
			From, To int64
			Min, Max *float64
		}
	}
	m := answer[doc](t, s, api("values", "name", dir+"/t.parquet", "column", "m"))
	// 0, 1, 2, 4, 5 and 6 remain: 1,000 = 142 × 7 + 6, so that all of them but 6 occur 143 times
	if m.Rows != 1000 || m.Nulls != 143 || m.Distinct != 6 || len(m.Top) != 6 || m.Top[5].Value != "6" ||
		m.Top[5].N != 142 || m.Top[0].N != 143 || m.Histogram.What != "value" || m.Histogram.From != 0 ||
		m.Histogram.To != 6 {
		t.Errorf("m: %+v", m)
	}
	var sum int64
	for _, n := range m.Histogram.Counts {
		sum += n
	}
	if sum != 857 {
		t.Errorf("the bins have %d values, want 857", sum)
	}
	k := answer[doc](t, s, api("values", "name", dir+"/t.parquet", "column", "k"))
	if len(k.Bands) != 10 {
		t.Fatalf("%d bands", len(k.Bands))
	}
	for i, b := range k.Bands { // a page of each row group, ascending
		if b.From != int64(100*i) || b.To != b.From+100 || *b.Min != float64(b.From) || *b.Max != float64(b.To-1) {
			t.Fatalf("band %d: %+v from %f to %f", i, b, *b.Min, *b.Max)
		}
	}
	for _, bad := range []string{"", "nope", "k,m"} {
		if w := get(s, api("values", "name", dir+"/t.parquet", "column", bad)); w.Code != 400 {
			t.Errorf("column %q: got %d %s", bad, w.Code, w.Body)
		}
	}
}

// TestSearchValues: rows are found by their values, and with them the pages that have them: those of the columns of the
// predicate, by a model of the file.
func TestSearchValues(t *testing.T) {
	dir := lines(t, 1000)
	s := newServer(t, nil, dir)
	name := dir + "/t.parquet"
	type doc struct {
		Rows  []int64
		Cut   bool
		Nodes []serve.Node
	}
	for where, is := range map[string]func(k int) bool{
		"k = 250":                func(k int) bool { return k == 250 },
		"k in (0, 99, 100, 999)": func(k int) bool { return k == 0 || k == 99 || k == 100 || k == 999 },
		"m = 5 and k > 900":      func(k int) bool { return k%7 == 5 && k > 900 },
		"m is null and k < 50":   func(k int) bool { return k%7 == 3 && k < 50 },
		"k > 5000":               func(int) bool { return false },
		"k BETWEEN 198 AND 201":  func(k int) bool { return k >= 198 && k <= 201 },
	} {
		got := answer[doc](t, s, api("search", "name", name, "table", name, "q", where))
		var rows []int64
		pages := map[int]bool{}
		for k := range 1000 {
			if is(k) {
				rows = append(rows, int64(k))
				pages[k/100] = true
			}
		}
		if !slices.Equal(got.Rows, rows) || got.Cut {
			t.Errorf("%s: got %v, want %v", where, got.Rows, rows)
		}
		seen := map[int]bool{}
		for _, n := range got.Nodes {
			if n.Role == serve.Page && n.Column == "k" && n.From != nil && *n.To-*n.From == 100 {
				seen[int(*n.From/100)] = true
			}
		}
		if !maps.Equal(seen, pages) {
			t.Errorf("%s: pages %v, want %v", where, seen, pages)
		}
	}
	if all := answer[doc](t, s, api("search", "name", name, "q", "k >= 0")); len(all.Rows) != 100 || !all.Cut {
		t.Errorf("very many: %d rows, cut %t", len(all.Rows), all.Cut)
	}
	if w := get(s, api("search", "name", name, "table", dir+"/t.csv", "q", "k = 1")); w.Code != 400 {
		t.Errorf("another table: %d %s", w.Code, w.Body)
	}
	if w := get(s, api("search", "name", name, "table", "/etc/passwd", "q", "k = 1")); w.Code != 404 {
		t.Errorf("what is not served: %d %s", w.Code, w.Body)
	}
}

// TestReads: a filter that one of ten row groups can pass reads less of the file than none, and nothing past its end.
func TestReads(t *testing.T) {
	dir := lines(t, 1000)
	s := newServer(t, nil, dir)
	type doc struct {
		Rows  int64
		Ended bool
		Files []struct {
			Name         string
			Size         int64
			Opened, Read [][2]int64
		}
	}
	read := func(where string) (doc, int64) {
		d := answer[doc](t, s, api("reads", "name", dir+"/t.parquet", "where", where))
		if len(d.Files) != 1 || d.Files[0].Name != dir+"/t.parquet" || !d.Ended {
			t.Fatalf("%q: %+v", where, d)
		}
		var n, end int64
		for _, r := range d.Files[0].Read {
			if r[0] <= end && end > 0 || r[1] <= r[0] || r[1] > d.Files[0].Size {
				t.Errorf("%q: the runs are %v of %d", where, d.Files[0].Read, d.Files[0].Size)
			}
			n, end = n+r[1]-r[0], r[1]
		}
		return d, n
	}
	all, allBytes := read("")
	some, someBytes := read("k >= 450 and k < 460")
	if all.Rows != 1000 || some.Rows != 10 || someBytes >= allBytes || allBytes == 0 {
		t.Errorf("%d rows in %d bytes, %d in %d", all.Rows, allBytes, some.Rows, someBytes)
	}
}

// TestVerifyStream: findings come as lines, and the last has the status and the command line.
func TestVerifyStream(t *testing.T) {
	dir, _ := damagedPlace(t)
	s := newServer(t, nil, dir)
	for name, want := range map[string]string{"a.red": `"status":0`, "wiki.trv": `"status":0`} {
		body := get(s, api("verify", "name", dir+"/"+name, "depth", "deep")).Body.String()
		lines := strings.Split(strings.TrimSpace(body), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, want) || !strings.Contains(last, "stoa verify") {
			t.Errorf("%s: %s", name, body)
		}
	}
	if body := get(s, api("verify", "name", dir+"/cut.red")).Body.String(); !strings.Contains(body, `"status":1`) {
		t.Errorf("a file that does not exist: %s", body)
	}
}
