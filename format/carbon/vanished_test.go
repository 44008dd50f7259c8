package carbon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// member is a member of an entry of tablestatus, in its JSON text.
type member struct{ name, text string }

// entriesOf returns the entries of a table's status with their members in order.
func entriesOf(t *testing.T, tree *store.Memory) (out [][]member) {
	t.Helper()
	var entries []json.RawMessage
	if err := json.Unmarshal(tree.Bytes("t/Metadata/tablestatus"), &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		d := json.NewDecoder(bytes.NewReader(e))
		var one []member
		for _, err := d.Token(); ; {
			name, nerr := d.Token()
			var v json.RawMessage
			if err != nil || nerr != nil || d.Decode(&v) != nil {
				break
			}
			one = append(one, member{name.(string), fmt.Sprintf("%q:%s", name, v)})
		}
		out = append(out, one)
	}
	return out
}

func putEntries(tree *store.Memory, entries [][]member) {
	var all []string
	for _, e := range entries {
		var words []string
		for _, m := range e {
			words = append(words, m.text)
		}
		all = append(all, "{"+strings.Join(words, ",")+"}")
	}
	tree.Put("t/Metadata/tablestatus", []byte("["+strings.Join(all, ",")+"]"))
}

// TestEntriesFusedAnywhere: if bytes between two entries of tablestatus are lost, a single entry with members of both
// is left, and a segment without an entry. Missing rows of that segment are always reported.
func TestEntriesFusedAnywhere(t *testing.T) {
	tried, last := 0, 0
	for _, name := range []string{"managed1", "managed_del", "managed_compact", "managed_alter", "managed_bucket"} {
		whole := loaded(t, filepath.Join(golden2, "managed", name))
		_, want, err := read(t, "t", stoa.OpenOptions{Tree: whole}, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		entries := entriesOf(t, whole)
		for i := range len(entries) - 1 {
			for from := range len(entries[i]) + 1 {
				for to := range len(entries[i+1]) + 1 {
					fused := slices.Concat(entries[i][:from], entries[i+1][to:])
					if len(fused) == 0 {
						continue
					}
					tree := loaded(t, filepath.Join(golden2, "managed", name))
					putEntries(tree, slices.Concat(entries[:i], [][]member{fused}, entries[i+2:]))
					_, got, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
					tried++
					if errors.Is(err, fault.Corrupt) || err == nil && differ(got, want, true) == "" {
						continue
					}
					found := verdict(t, tree)
					if i+2 == len(entries) && has(found, "carbon.segment.unnamed") {
						last++
						continue // it may be an unfinished load
					}
					t.Errorf("%s, %d members of entry %d, those of the next from %d on: %d rows of %d, %v, %v", name,
						from, i, to, len(got), len(want), err, codesOf(found))
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("got %d cases", tried)
	}
	t.Logf("%d of %d may be loads that did not end", last, tried)
}

// TestEntryVanishes: a segment of format 2, which has no segment file, without its entry in tablestatus is reported.
func TestEntryVanishes(t *testing.T) {
	whole := loaded(t, filepath.Join("../../corpus/carbon/1.0.0", "v2_b2000")) // it has the files of one segment
	entries := entriesOf(t, whole)
	for _, c := range []struct {
		name    string
		entries [][]member
		there   []string // segments
		segment string   // the one without an entry
		code    string
	}{
		{"the first of two", entries[1:], []string{"0", "1"}, "0", "carbon.segment.vanished"},
		{"a load that did not end", entries[:1], []string{"0", "1"}, "1", "carbon.segment.unnamed"},
		{"the one after that", entries[:1], []string{"0", "2"}, "2", "carbon.segment.vanished"},
		{"a compaction that did not end", entries, []string{"0", "1", "0.1"}, "0.1", "carbon.segment.unnamed"},
	} {
		tree := store.NewMemory(nil)
		for _, n := range whole.Names() {
			for _, segment := range c.there {
				tree.Put(strings.Replace(n, "Segment_0/", "Segment_"+segment+"/", 1), whole.Bytes(n))
			}
		}
		putEntries(tree, c.entries)
		found := verdict(t, tree)
		if got := only(found, c.code); len(got) != 1 {
			t.Errorf("%s: %v", c.name, codesOf(found))
		}
		_, _, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
		if damaged := c.code == "carbon.segment.vanished"; errors.Is(err, fault.Corrupt) != damaged {
			t.Errorf("%s: %v", c.name, err)
		}
		_, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree, Opts: map[string]string{"segment": c.segment}},
			stoa.ScanSpec{})
		if err != nil || len(rows) != 5000 {
			t.Errorf("%s: segment %s by name: got %d rows, %v", c.name, c.segment, len(rows), err)
		}
		_, found, err = recovered(t, tree, "t")
		if damaged := c.code == "carbon.segment.vanished"; err != nil || has(found, c.code) != damaged {
			t.Errorf("%s: recovery: %v, %v", c.name, err, codesOf(found))
		}
	}
}

func codesOf(found []region.Finding) (out []string) {
	for _, f := range found {
		out = append(out, f.Severity.String()+" "+f.Code)
	}
	return out
}
