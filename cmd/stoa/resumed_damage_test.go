package main

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// storedBlock is a block of a place, as ls --blocks tells of it.
type storedBlock struct {
	Table, Object, Column string
	Tablet                string `json:"tablet-id"`
	Kind                  string `json:"block-kind"`
	RowSet                any    `json:"rowset-id"`
}

// blocksIn returns the blocks of a table, with names relative to the place.
func blocksIn(t *testing.T, files map[string][]byte, table string) (out []storedBlock) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, files)
	status, text := printedBy("ls", "--blocks", dir, "-f", "json")
	var all []storedBlock
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != 0 {
		t.Fatal(status, err)
	}
	for _, b := range all {
		if b.Table == table {
			b.Object = strings.TrimPrefix(b.Object, dir+"/")
			out = append(out, b)
		}
	}
	return out
}

// rowsIn returns the rows of an output, as texts.
func rowsIn(t *testing.T, name string) map[string]bool {
	t.Helper()
	status, text := printedBy("convert", name, "--to", "jsonl", "-o", "-", "-q", "--no-verify")
	if status != 0 {
		t.Fatalf("%s: %d: %s", name, status, text)
	}
	out := map[string]bool{}
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		out[l] = true
	}
	return out
}

// midByteChanged returns the files with the byte in the middle of some of them changed.
func midByteChanged(files map[string][]byte, names ...string) map[string][]byte {
	out := maps.Clone(files)
	for _, name := range names {
		b := slices.Clone(out[name])
		b[len(b)/2] ^= 0x55
		out[name] = b
	}
	return out
}

// without returns the files without some of them.
func without(files map[string][]byte, names ...string) map[string][]byte {
	out := maps.Clone(files)
	for _, name := range names {
		delete(out, name)
	}
	return out
}

// batches returns where each batch of a segment of a log begins, and where the last one ends.
func batches(b []byte) (at []int) {
	next := 12 + int(binary.LittleEndian.Uint32(b[8:]))
	for next+16 <= len(b) {
		at = append(at, next)
		n := int(binary.LittleEndian.Uint32(b[next:]))
		if n == 0 || next+16+n > len(b) {
			break
		}
		next += 16 + n
	}
	return at
}

// TestResumedRunsKeepRowsOfOtherDamage: a resumed run never replaces a table, of which something was lost when it was
// written, by one of which something else is lost, though that has more rows: each row that was there is there, and the
// run says so. If less is lost, and nothing else, it is replaced; so it is with --force.
func TestResumedRunsKeepRowsOfOtherDamage(t *testing.T) {
	cluster, rows := fewTables(t, "d_wal")
	bySet := map[any][]string{}
	for _, b := range blocksIn(t, cluster, "d_wal") {
		if b.Kind == "column" && b.Column != "id" {
			bySet[b.RowSet] = append(bySet[b.RowSet], b.Object)
		}
	}
	if len(bySet) < 2 {
		t.Fatal(bySet)
	}
	var sets [][]string
	for _, set := range bySet {
		sets = append(sets, set)
	}
	slices.SortFunc(sets, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	a, b := sets[0][1], sets[1][1]
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all", "--damaged", "skip-rows"}, {"recover", "--all"},
		{"rescue", "--file-size", "20kB"}, {"rescue", "--damaged", "null-cells"}} {
		for _, x := range []struct {
			name      string
			then, now map[string][]byte
			replaced  bool
		}{
			{"a, then b", midByteChanged(cluster, a), midByteChanged(cluster, b), false},
			{"b, then a", midByteChanged(cluster, b), midByteChanged(cluster, a), false},
			{"a, then both", midByteChanged(cluster, a), midByteChanged(cluster, a, b), false},
			{"both, then a", midByteChanged(cluster, a, b), midByteChanged(cluster, a), true},
			{"both, then none", midByteChanged(cluster, a, b), cluster, true},
		} {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			args := append(slices.Clone(verb), in, "-o", out)
			writeFiles(t, in, x.then)
			if status, text := printedBy(args...); status != 3 {
				t.Fatalf("%v, %s: status %d: %s", verb, x.name, status, text)
			}
			name, _ := filepath.Glob(filepath.Join(out, "d_wal*"))
			before := filesBelow(t, out)
			then := rowsIn(t, name[0])
			writeFiles(t, in, x.now)
			status, text := printedBy(append(args, "--resume")...)
			now := rowsIn(t, name[0])
			kept := strings.Contains(strings.Join(strings.Fields(text), " "), "damage that was not there")
			if kept == x.replaced || same(before, filesBelow(t, out)) == x.replaced {
				t.Errorf("%v, %s: status %d: %s", verb, x.name, status, text)
			}
			if !slices.Contains(verb, "null-cells") {
				for row := range then {
					if !now[row] {
						t.Fatalf("%v, %s: a row is gone: %s", verb, x.name, row)
					}
				}
			}
			if whole := len(now) == int(rows["d_wal"]) && x.replaced; (status == 0) != (x.name == "both, then none") ||
				status == 0 && !whole {
				t.Errorf("%v, %s: status %d, %d rows", verb, x.name, status, len(now))
			}
			if !x.replaced {
				printedBy(append(args, "--resume", "--force")...)
				if same(before, filesBelow(t, out)) {
					t.Errorf("%v, %s: with --force nothing is replaced", verb, x.name)
				}
			}
		}
	}
}

// TestResumedRunsKeepTabletsBesideNewerOnes: a table of which one tablet is newer now, and another one has lost its
// blocks and the beginning of its log, is not replaced, though the log of that one had been lost before, and the table
// has more rows now.
func TestResumedRunsKeepTabletsBesideNewerOnes(t *testing.T) {
	cluster, _ := fewTables(t, "part")
	blocks := map[string][]string{}
	for _, b := range blocksIn(t, cluster, "part") {
		blocks[b.Tablet] = append(blocks[b.Tablet], b.Object)
	}
	tablets := slices.Sorted(maps.Keys(blocks))
	log := func(tablet string) string {
		for name := range cluster {
			if strings.Contains(name, "/wals/"+tablet+"/wal-") {
				return name
			}
		}
		t.Fatal("no log of " + tablet)
		return ""
	}
	for _, newer := range tablets {
		for _, hurt := range tablets {
			if newer == hurt {
				continue
			}
			all, beginnings := cluster[log(newer)], cluster[log(hurt)]
			then := without(cluster, append(slices.Clone(blocks[newer]), log(hurt))...)
			then[log(newer)] = all[:batches(all)[2]] // no row yet
			now := without(cluster, blocks[hurt]...)
			at := batches(beginnings)
			now[log(hurt)] = slices.Concat(beginnings[:at[0]], beginnings[at[2]:])
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			writeFiles(t, in, then)
			first, _ := rescueInto(t, []string{in}, out)
			had := rowsIn(t, filepath.Join(out, "part.parquet"))
			if err := os.RemoveAll(in); err != nil {
				t.Fatal(err)
			}
			writeFiles(t, in, now)
			second, status := rescueInto(t, []string{in}, out, "--resume")
			has := rowsIn(t, filepath.Join(out, "part.parquet"))
			if status != 3 || len(had) == 0 || *first.Tables[0].Rows != int64(len(had)) || !maps.Equal(had, has) ||
				!strings.Contains(strings.Join(second.Tables[0].Why, " "), "is kept") {
				t.Errorf("%s newer, %s hurt: status %d, %d rows, then %d: %v", newer, hurt, status, len(had), len(has),
					second.Tables[0].Why)
			}
			if testing.Short() {
				return
			}
		}
	}
}
