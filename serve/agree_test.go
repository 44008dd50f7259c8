package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/verbs"
	"stoa/serve"
)

// said runs a command line, and returns what it prints.
func said(t *testing.T, args ...string) (out, notes string, status int) {
	t.Helper()
	var b, errs bytes.Buffer
	status, _ = verbs.RunApp(t.Context(), verbs.NewApp(nil, &b, &errs), args)
	return b.String(), errs.String(), status
}

// TestPageAndCommandAgree damages real files of every format: the page shows the rows that stoa cat prints, cell by
// cell, and says that something is lost exactly if cat does (in its manifest). STOA_SEED=n damages others.
func TestPageAndCommandAgree(t *testing.T) {
	dir := t.TempDir()
	s := newServer(t, nil, dir)
	seed := uint64(8)
	if text := os.Getenv("STOA_SEED"); text != "" {
		fmt.Sscan(text, &seed)
	}
	r := rand.New(rand.NewPCG(27, seed))
	files := corpusFiles(t)
	r.Shuffle(len(files), func(i, k int) { files[i], files[k] = files[k], files[i] })
	rows, lost, same := 0, 0, 0
	for i := range rounds(24, 300) {
		from := files[i%len(files)]
		b, err := os.ReadFile(from)
		if err != nil || len(b) > 1<<20 {
			continue
		}
		name := filepath.Join(dir, filepath.Base(from))
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		damage(t, r, name)
		n, gone := agree(t, s, from, name)
		rows += n
		if gone {
			lost++
		} else if n > 0 {
			same++
		}
		os.Remove(name)
	}
	if rows < 100 || lost == 0 || same == 0 {
		t.Errorf("%d rows, %d damaged tables, %d others: the test shows little", rows, lost, same)
	}
	t.Logf("%d rows of %d damaged tables and %d others", rows, lost, same)
}

// agree compares the rows of a table on the page with those of stoa cat.
func agree(t *testing.T, s *serve.Server, from, name string) (n int, gone bool) {
	t.Helper()
	manifest := name + ".lost.json"
	defer os.Remove(manifest)
	out, notes, status := said(t, "cat", "--damaged", "null-cells", "-f", "jsonl", "--manifest", manifest, "--", name)
	lost := status == 3 && !lostNothing(t, manifest)
	var want [][]string
	for line := range strings.Lines(out) {
		want = append(want, rawCells(t, line))
	}
	for next, end := int64(0), false; !end; {
		w, ok := asked[windowOf](t, s, api("rows", "name", name, "raw", "true", "from", fmt.Sprint(next), "n", "1000"))
		if !ok || w.Recovered {
			if status == 0 {
				t.Errorf("%s: cat reads it, and the page does not: recovered %t", from, w.Recovered)
			}
			return n, true
		}
		gone = gone || len(w.Lost) > 0 || w.unplaced()
		if w.Next <= next && !w.End {
			t.Fatalf("%s: the window after row %d is empty", from, next)
		}
		for _, row := range w.Rows {
			if n >= len(want) {
				t.Fatalf("%s: more rows than the %d of cat (status %d)", from, len(want), status)
			}
			for c := range row {
				got := "null"
				if row[c] != nil {
					got = *row[c]
				}
				if got != want[n][c] && len(want[n][c]) < 2000 {
					t.Fatalf("%s: row %d, %s: %s, and cat has %s", from, n, w.Columns[c].Name, got, want[n][c])
				}
			}
			n++
		}
		next, end = w.Next, w.End
	}
	if n != len(want) && status != 1 {
		t.Fatalf("%s: %d rows, and cat has %d (status %d)", from, n, len(want), status)
	}
	if strings.Contains(notes, "output.values.utf8") && !gone { // JSON cannot hold them; the page shows U+FFFD, too
		return n, gone
	}
	if gone != lost && status != 1 {
		t.Errorf("%s: the page says that something is lost: %t, and cat ends with %d: %s", from, gone, status, notes)
	}
	return n, gone
}

// lostNothing reports whether a manifest has no losses: cat also ends with 3 for damage that costs no row, such as that
// of an index.
func lostNothing(t *testing.T, manifest string) bool {
	t.Helper()
	var m struct{ Losses []json.RawMessage }
	b, err := os.ReadFile(manifest)
	if err != nil {
		return false // nothing was read
	}
	if err := json.Unmarshal(b, &m); err != nil || m.Losses == nil {
		t.Fatalf("%s: %v: %s", manifest, err, b)
	}
	return len(m.Losses) == 0
}

// rawCells are the cells of a row of JSON lines, in order.
func rawCells(t *testing.T, line string) (row []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	for d.More() {
		var cell json.RawMessage
		_, err := d.Token()
		if err == nil {
			err = d.Decode(&cell)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		row = append(row, string(cell))
	}
	return row
}
