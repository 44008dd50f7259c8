//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// segments returns the loads that a table has ever shown, with the times of their ends, as meta prints them.
func segments(t *testing.T) map[string]string {
	t.Helper()
	var docs []struct{ Facts map[string]string }
	text := do(t, "meta", "-f", "json", lifeTable)
	if err := json.Unmarshal([]byte(text), &docs); err != nil || len(docs) != 1 {
		t.Fatal(text, err)
	}
	out := map[string]string{}
	for key, value := range docs[0].Facts {
		name, ok := strings.CutPrefix(key, "segment.")
		if end := regexp.MustCompile(", to ([^,]*)").FindStringSubmatch(value); ok && end != nil {
			out[name] = end[1]
		}
	}
	if len(out) == 0 {
		t.Fatal("no segments in", text)
	}
	return out
}

// TestEverySegment: with --every segment, a lake has the rows of the end of every load that the table has ever shown,
// also of those that were compacted or deleted since; a load whose rows cannot be read any more is told by its name.
func TestEverySegment(t *testing.T) {
	for _, to := range []string{"iceberg", "delta"} {
		gone, missed := 0, 0
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(to, " ", seed), func(t *testing.T) {
				g, m := everySegment(t, to, seed, seed == 3)
				gone, missed = gone+g, missed+m
			})
		}
		if gone == 0 || missed == 0 {
			t.Errorf("%s: %d loads were compacted or deleted, and %d not read", to, gone, missed)
		}
	}
}

// everySegment returns how many loads were compacted or deleted and are in the lake, and how many were left out.
func everySegment(t *testing.T, to string, seed uint64, all bool) (gone, missed int) {
	l := newLife(t, seed)
	type then struct {
		end  string
		rows map[int]string
	}
	past := map[string]then{}
	note := func() {
		t.Helper()
		for name, end := range segments(t) {
			if _, known := past[name]; !known {
				past[name] = then{end, maps.Clone(l.rows)}
			}
		}
		time.Sleep(3 * time.Millisecond)
	}
	note()
	cleaned := false
	from := map[string][2]int{"0": {0, l.next}} // the rows of loads that are still segments
	for step := range 9 {
		switch first := l.next; l.r.IntN(4) {
		case 0, 1:
			l.load(1 + l.r.IntN(9))
			for name := range segments(t) {
				if _, known := past[name]; !known {
					from[name] = [2]int{first, l.next}
				}
			}
		case 2:
			if names := slices.Sorted(maps.Keys(from)); len(names) > 1 {
				do(t, "compact", lifeTable, "--segments", strings.Join(names[:2], ","), "-q")
				delete(from, names[0])
				delete(from, names[1])
			}
		case 3:
			if names := slices.Sorted(maps.Keys(from)); len(names) > 0 {
				do(t, "delete", lifeTable, "--segment", names[0], "-q")
				gone := from[names[0]]
				maps.DeleteFunc(l.rows, func(id int, _ string) bool { return id >= gone[0] && id < gone[1] })
				delete(from, names[0])
			}
		}
		note()
		if seed%2 == 1 && step == 5 {
			do(t, "clean", lifeTable, "-q")
			cleaned = true
		}
	}
	if all { // every segment is marked for delete
		for name := range segments(t) {
			_ = said("nowhere", "delete", lifeTable, "--segment", name, "-q") // it may be deleted, or compacted
		}
		clear(l.rows)
	}
	told := said("nowhere", "convert", lifeTable, "--every", "segment", "--to", to, "-o", "lake")
	if !strings.HasSuffix(told, "status: 0") {
		t.Fatal(told)
	}
	l.expect(l.rows, "lake")
	left := map[string]bool{}
	names := regexp.MustCompile(`left out (\d+) loads?, .*: segments ([0-9., ]+) \(`)
	if m := names.FindStringSubmatch(told); m != nil {
		for _, name := range strings.Split(m[2], ", ") {
			left[name] = true
		}
		if m[1] != fmt.Sprint(len(left)) {
			t.Errorf("the number of names is not %s: %s", m[1], told)
		}
	}
	if len(left) > 0 && !cleaned {
		t.Errorf("loads are left out of a table that was not cleaned: %s", told)
	}
	for name, p := range past {
		if !left[name] {
			l.expect(p.rows, "lake", "--at", p.end)
			if _, still := from[name]; !still || all {
				gone++
			}
		}
	}
	return gone, len(left)
}

// TestEveryOfOthers: a table whose past is not known is told by that.
func TestEveryOfOthers(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "one.jsonl", "{\"id\":1}\n")
	for _, every := range []string{"segment", "1h"} {
		got := said("nowhere", "convert", "one.jsonl", "--to", "iceberg", "-o", "lake", "--every", every)
		if !strings.HasSuffix(got, "status: 2") || !strings.Contains(got, "one.jsonl is none") {
			t.Errorf("%s: %s", every, got)
		}
	}
}

// TestTruncatedByOthers: CarbonData's TRUNCATE TABLE marks all loads as deleted, without a time. With --every segment,
// a lake has the rows of the end of each load of which they are certain, and the others are named. A lake made before
// the truncation catches up.
func TestTruncatedByOthers(t *testing.T) {
	l := newLife(t, 1)
	first := maps.Clone(l.rows)
	ends := segments(t)
	time.Sleep(3 * time.Millisecond)
	l.load(5)
	do(t, "convert", lifeTable, "--to", "iceberg", "-o", "old", "-q")
	const status = "store/db/t/Metadata/tablestatus"
	b, err := os.ReadFile(status)
	if err == nil {
		b = []byte(strings.ReplaceAll(string(b), `"Success"`, `"Marked for Delete"`))
		err = os.WriteFile(status, b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	clear(l.rows)
	l.load(2)
	told := said("nowhere", "convert", lifeTable, "--every", "segment", "--to", "iceberg", "-o", "lake")
	if !strings.HasSuffix(told, "status: 0") || !strings.Contains(told, ": segments 1 (") {
		t.Error(told)
	}
	l.expect(l.rows, "lake")
	l.expect(first, "lake", "--at", ends["0"])
	do(t, "convert", "--catch-up", lifeTable, "-o", "old", "-q")
	l.expect(l.rows, "old")
}
