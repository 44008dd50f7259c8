package carbon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
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
	tried := 0
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
					t.Errorf("%s, %d members of entry %d, those of the next from %d on: %d rows of %d, %v, %v", name,
						from, i, to, len(got), len(want), err, codesOf(verdict(t, tree)))
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("got %d cases", tried)
	}
}

// TestBytesOfTablestatusLost: whatever run of bytes is lost from tablestatus, if fewer entries are left, of any segment
// and of none, in tables with segment files and without, missing rows are an error.
func TestBytesOfTablestatusLost(t *testing.T) {
	trees := map[string]*store.Memory{"format 2": copiedSegments(t, "0", "1")}
	for _, n := range []string{"managed1", "managed_alter", "managed_part", "managed_bucket", "managed_compact",
		"managed_del"} {
		trees[n] = loaded(t, filepath.Join(golden2, "managed", n))
	}
	if corpus := os.Getenv("STOA_CORPUS"); corpus != "" {
		trees["format 1"] = loaded(t, filepath.Join(corpus, "carbon", "v1/basic/default/old_basic_v1"))
	}
	for name, tree := range trees {
		_, want, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
		if err != nil || len(want) == 0 {
			t.Fatal(name, len(want), err)
		}
		shorter := withFewerEntries(tree.Bytes("t/Metadata/tablestatus"), len(entriesOf(t, tree)))
		most := 1000
		if testing.Short() {
			most = 20
		}
		step := max(1, len(shorter)/most)
		for i := 0; i < len(shorter); i += step {
			tree.Put("t/Metadata/tablestatus", []byte(shorter[i]))
			_, got, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
			if !errors.Is(err, fault.Corrupt) && (err != nil || differ(got, want, true) != "") {
				t.Errorf("%s: %d rows of %d, %v, %v, with %s", name, len(got), len(want), err,
					codesOf(verdict(t, tree)), shorter[i])
			}
		}
		if len(shorter) == 0 {
			t.Error(name, "nothing was tried")
		}
		t.Logf("%s: each %d of %d", name, step, len(shorter))
	}
}

// withFewerEntries returns what is left of a status without a run of bytes, where it has fewer entries.
func withFewerEntries(status []byte, than int) []string {
	out := map[string]bool{}
	for from := range status {
		if testing.Short() && from > 1 && from%5 > 0 { // the first entry begins at 1
			continue
		}
		for to := from + 1; to <= len(status); to++ {
			left := slices.Concat(status[:from], status[to:])
			var entries []json.RawMessage
			if json.Valid(left) && json.Unmarshal(left, &entries) == nil && len(entries) < than {
				out[string(left)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// copiedSegments returns a table of format 2 whose segments have the same files, and a status of segments 0 and 1.
func copiedSegments(t *testing.T, segments ...string) *store.Memory {
	whole := loaded(t, filepath.Join("../../corpus/carbon/1.0.0", "v2_b2000")) // it has the files of one segment
	tree := store.NewMemory(nil)
	for _, n := range whole.Names() {
		for _, segment := range segments {
			tree.Put(strings.Replace(n, "Segment_0/", "Segment_"+segment+"/", 1), whole.Bytes(n))
		}
	}
	return tree
}

// TestEntryVanishes: a segment of format 2, which has no segment file, without its entry in tablestatus is reported.
func TestEntryVanishes(t *testing.T) {
	entries := entriesOf(t, copiedSegments(t, "0"))
	for _, c := range []struct {
		name    string
		entries [][]member
		there   []string // segments
		segment string   // the one without an entry
		ended   bool     // it has its index file
		code    string
	}{
		{"the first of two", entries[1:], []string{"0", "1"}, "0", true, "carbon.segment.vanished"},
		{"a load that did not end", entries[:1], []string{"0", "1"}, "1", false, "carbon.segment.unnamed"},
		{"the last of two", entries[:1], []string{"0", "1"}, "1", true, "carbon.segment.vanished"},
		{"the one after that", entries[:1], []string{"0", "2"}, "2", false, "carbon.segment.vanished"},
		{"a compaction that did not end", entries, []string{"0", "1", "0.1"}, "0.1", true, "carbon.segment.unnamed"},
	} {
		tree := copiedSegments(t, c.there...)
		if !c.ended {
			tree = lacking(t, tree, "Segment_"+c.segment+"/0-0-1480000000000.carbonindex")
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
