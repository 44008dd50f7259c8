package serve_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/serve"
)

// TestFiguresOfPageAndCommandAgree damages real files and directories of every format: how many rows pass a filter, an
// export, the figures of a column, stats, and the findings of verify are on the page what the command says; where
// something is lost, the page tells it with each of them. STOA_SEED=n damages others.
func TestFiguresOfPageAndCommandAgree(t *testing.T) {
	dir := t.TempDir()
	s := newServer(t, nil, dir)
	r := rand.New(rand.NewPCG(2711, seedOf(1)))
	files := corpusFiles(t)
	r.Shuffle(len(files), func(i, k int) { files[i], files[k] = files[k], files[i] })
	tables, err := filepath.Glob("../corpus/carbon/*/*/*/Metadata")
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for i, m := range tables {
		tables[i] = filepath.Dir(m)
	}
	modelDir, models := modelTables(t)
	for _, m := range models {
		tables = append(tables, filepath.Join(modelDir, m))
	}
	var seen figuresSeen
	for i := range rounds(16, 300) {
		from := files[i%len(files)]
		if i%2 == 0 {
			from = tables[r.IntN(len(tables))]
		} else if st, err := os.Stat(from); err != nil || st.Size() > 1<<18 {
			continue
		}
		name := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(from)))
		if err := copyAll(from, name); err != nil {
			t.Fatal(err)
		}
		damage(t, r, name)
		figuresAgree(t, s, r, fmt.Sprintf("%s, %d", from, i), name, &seen)
		os.RemoveAll(name)
	}
	if seen.filters == 0 || seen.lost == 0 || seen.exports == 0 || seen.findings == 0 {
		t.Errorf("the test shows little: %+v", seen)
	}
	t.Logf("%+v", seen)
}

// figuresSeen is how much was compared.
type figuresSeen struct{ filters, passed, lost, exports, values, findings int }

// figuresAgree compares what the page says about a table with what the command says.
func figuresAgree(t *testing.T, s *serve.Server, r *rand.Rand, from, name string, seen *figuresSeen) {
	t.Helper()
	findingsAgree(t, s, from, name, seen)
	out, _, status := saysOf(t, "cat", "--damaged", "null-cells", "-f", "jsonl", "--", name)
	w, ok := asked[windowOf](t, s, api("rows", "name", name, "raw", "true", "n", "1000"))
	if status == 1 || !ok || w.Recovered || len(w.Rows) == 0 { // TestPageAndCommandAgree looks at those
		return
	}
	c := r.IntN(len(w.Columns))
	column := w.Columns[c].Name
	var cells []string
	for line := range strings.Lines(out) {
		cells = append(cells, rawCells(t, line)[c])
	}
	if slices.IndexFunc(w.Columns, isNamed(column)) != c {
		return // two columns have one name
	}
	valuesAgree(t, s, from, name, column, cells, seen)
	where := quoted(column) + " is not null"
	if cell := w.Rows[r.IntN(len(w.Rows))][c]; cell != nil && len(*cell) < 500 {
		var text string
		if json.Unmarshal([]byte(*cell), &text) == nil {
			where = quoted(column) + " >= '" + strings.ReplaceAll(text, "'", "''") + "'"
		} else if strings.ContainsAny((*cell)[:1], "-0123456789") {
			where = quoted(column) + " < " + *cell
		}
	}
	filterAgrees(t, s, from, name, where, seen)
	exportsAgree(t, s, from, name, where, seen)
}

func quoted(column string) string { return `"` + strings.ReplaceAll(column, `"`, `""`) + `"` }

// tells reports whether an answer says that something is lost, or was noticed.
func (l *lossOf) tells() bool { return len(l.Lost) > 0 || l.unplaced() }

// filterAgrees compares how many rows pass a filter, by the windows of the page, and by all that are read at once.
func filterAgrees(t *testing.T, s *serve.Server, from, name, where string, seen *figuresSeen) {
	t.Helper()
	manifest := name + ".lost.json"
	defer os.Remove(manifest)
	out, notes, status := saysOf(t, "count", "--damaged", "null-cells", "-f", "json", "--manifest", manifest,
		"--where="+where, "--", name)
	rows, told := 0, false
	for next, end := int64(0), false; !end; {
		w, ok := asked[windowOf](t, s, api("rows", "name", name, "where", where, "n", "1000", "from",
			fmt.Sprint(next)))
		if !ok {
			if status == 0 {
				t.Errorf("%s: the page cannot count %s", from, where)
			}
			return
		}
		if w.Next <= next && !w.End {
			t.Fatalf("%s, %s: the window after row %d is empty", from, where, next)
		}
		rows, told, next, end = rows+len(w.Rows), told || w.tells() || w.Recovered, w.Next, w.End
	}
	var counted struct{ Rows int }
	if status != 0 && status != 3 || json.Unmarshal([]byte(out), &counted) != nil {
		t.Errorf("%s: the page counts %s, and count ends with %d: %s", from, where, status, notes)
		return
	}
	reads, ok := asked[struct {
		Rows  int
		Ended bool
		lossOf
	}](t, s, api("reads", "name", name, "where", where))
	if rows != counted.Rows || ok && reads.Ended && reads.Rows != counted.Rows {
		t.Errorf("%s, %s: %d rows, read at once %d, and count says %d", from, where, rows, reads.Rows, counted.Rows)
	}
	lost := status == 3 && !lostNothing(t, manifest)
	if lost && (!told || ok && !reads.tells()) {
		t.Errorf("%s, %s: rows are lost: %s\nand the page tells it: %t, with what is read: %t", from, where, notes,
			told, reads.tells())
	}
	seen.filters, seen.passed = seen.filters+1, seen.passed+rows
	if lost {
		seen.lost++
	}
}

// exportsAgree compares exports with what stoa cat prints, byte by byte.
func exportsAgree(t *testing.T, s *serve.Server, from, name, where string, seen *figuresSeen) {
	t.Helper()
	for _, damaged := range []string{"fail", "skip-rows", "null-cells"} {
		out, notes, status := saysOf(t, "cat", "--damaged", damaged, "-f", "csv", "--where="+where, "--", name)
		got := get(s, api("export", "name", name, "form", "csv", "damaged", damaged, "where", where))
		whole := got.Code == http.StatusOK && got.Body.String() == out
		told := got.Result().Trailer.Get("Stoa-Lost") != ""
		switch {
		case status == 0 && (!whole || told):
			t.Errorf("%s, %s, %s: cat is fine, and the export has status %d, %d bytes, told %t", from, where, damaged,
				got.Code, got.Body.Len(), told)
		case status == 3 && damaged != "fail" && got.Code == http.StatusOK && (!whole || !told):
			t.Errorf("%s, %s, %s: cat says\n%s\nand the export: whole %t, told %t", from, where, damaged, notes, whole,
				told)
		case status != 0 && damaged == "fail" && got.Code == http.StatusOK && whole:
			t.Errorf("%s, %s: cat ends with %d, and the export looks whole", from, where, status)
		}
		seen.exports++
	}
}

// valuesAgree compares the figures of a column with its cells as stoa cat prints them.
func valuesAgree(t *testing.T, s *serve.Server, from, name, column string, cells []string, seen *figuresSeen) {
	t.Helper()
	v, ok := asked[struct {
		Rows, Nulls, Distinct, Altered int
		Ended                          bool
		DistinctMore                   bool `json:"distinct_more"`
		Top                            []struct{ N int }
	}](t, s, api("values", "name", name, "column", column))
	if !ok || !v.Ended {
		return
	}
	counts, nulls, most := map[string]int{}, 0, 0
	for _, c := range cells {
		if c == "null" {
			nulls++
			continue
		}
		counts[c]++
		most = max(most, counts[c])
	}
	top := 0
	if len(v.Top) > 0 {
		top = v.Top[0].N
	}
	if v.Rows != len(cells) || v.Nulls != nulls || v.Altered == 0 && !v.DistinctMore && (v.Distinct != len(counts) ||
		top != most) {
		t.Errorf("%s, %s: %+v, and cat has %d rows, %d nulls, %d values, the most frequent %d times", from, column, v,
			len(cells), nulls, len(counts), most)
	}
	seen.values++
}

// findingsAgree compares stats and the findings of verify with those of the command, line by line.
func findingsAgree(t *testing.T, s *serve.Server, from, name string, seen *figuresSeen) {
	t.Helper()
	out, notes, status := saysOf(t, "stats", "--damaged", "null-cells", "-f", "json", "--", name)
	d, ok := asked[struct {
		Status int
		Doc    json.RawMessage
	}](t, s, api("command", "verb", "stats", "name", name))
	if !ok || d.Status != status || !sameStats(string(d.Doc), out) {
		t.Errorf("%s: stats ends with %d, and the command with %d: %s", from, d.Status, status, notes)
	}
	for _, depth := range []string{"quick", "sums", "deep"} {
		args := []string{"verify", "-f", "jsonl", "--", name}
		if depth != "sums" {
			args = slices.Insert(args, 1, "--"+depth)
		}
		want, _, status := saysOf(t, args...)
		got := get(s, api("verify", "name", name, "depth", depth))
		var found []string
		ended := -1
		for line := range strings.Lines(got.Body.String()) {
			var l struct {
				Code   string
				Status *int
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%s: %v: %s", from, err, line)
			}
			if l.Code != "" {
				found = append(found, line)
			}
			if l.Status != nil {
				ended = *l.Status
			}
		}
		if strings.Join(found, "") != want || ended != status {
			t.Errorf("%s: verify %s finds %d, and ends with %d; the command ends with %d:\n%s", from, depth, len(found),
				ended, status, want)
		}
		seen.findings += len(found)
	}
}

// sameStats compares documents of stats: the page has long bounds by their beginnings, and "…".
func sameStats(page, command string) bool {
	var got, want []map[string]json.RawMessage
	if json.Unmarshal([]byte(page), &got) != nil || json.Unmarshal([]byte(command), &want) != nil {
		return page == "null" && !json.Valid([]byte(command))
	}
	return slices.EqualFunc(got, want, func(g, w map[string]json.RawMessage) bool {
		return maps.EqualFunc(g, w, func(a, b json.RawMessage) bool {
			var short, long string
			if string(a) == string(b) || json.Unmarshal(a, &short) != nil || json.Unmarshal(b, &long) != nil {
				return string(a) == string(b)
			}
			begin, cut := strings.CutSuffix(short, "…")
			return short == long || cut && len(long) > 300 && len(begin) > 290 && strings.HasPrefix(long, begin)
		})
	})
}
