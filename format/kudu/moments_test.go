package kudu_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/store"
)

// event is a line of the list "history".
type event struct {
	what string
	time uint64
	ops  string
}

// historyIn returns the events of tables, by table and kind.
func historyIn(t *testing.T, tree store.Tree) map[string]map[string][]event {
	t.Helper()
	lister, err := stoa.Listing("history", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string][]event{}
	_, err = lister.List(t.Context(), format.Target{Tree: tree}, format.OpenOptions{}, func(v []string) {
		at, _ := strconv.ParseUint(v[6], 10, 64)
		if out[v[0]] == nil {
			out[v[0]] = map[string][]event{}
		}
		out[v[0]][v[5]] = append(out[v[0]][v[5]], event{v[8], at, v[9]})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCorpusHistory: the history of the corpus's tables agrees with the operations of their generator, whose client
// recorded the times: inserts before the end of phase p0a, the last operation of d_wal right before the last snapshot,
// 50 inserts and 75 updates of d_wal only in the log, and the schema changes of d_alter.
func TestCorpusHistory(t *testing.T) {
	dir := corpus(t)
	for run, taken := range map[string]string{"fs_file": "file_ck", "fs_log": "log_ck"} {
		files, _, _ := archive(t, run)
		got := historyIn(t, store.NewMemory(files))
		b, err := os.ReadFile(filepath.Join(dir, "expected", "snapshots."+taken+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var snapshots []struct {
			Phase string
			HT    uint64
		}
		if err := json.Unmarshal(b, &snapshots); err != nil {
			t.Fatal(err)
		}
		at := map[string]uint64{}
		for _, s := range snapshots {
			at[s.Phase] = s.HT
		}
		wal := got["d_wal"]
		if len(wal["first"]) != 1 || len(wal["last"]) != 1 || len(wal["log"]) != 1 {
			t.Fatalf("%s: d_wal: got %+v, want one event each of first, last and log", run, wal)
		}
		if last := wal["last"][0].time; last+1 != at["final"] {
			t.Errorf("%s: d_wal: got the last operation at %d, want %d, right before the snapshot", run, last,
				at["final"]-1)
		}
		if wal["log"][0].ops != "125" {
			t.Errorf("%s: d_wal: got %s operations only in the log, want 125", run, wal["log"][0].ops)
		}
		for _, name := range []string{"d_raw", "d_minor", "d_major", "d_rowset", "d_wal"} {
			x := got[name]
			if first := x["first"][0].time; first == 0 || first >= at["p0a"] {
				t.Errorf("%s: %s: got the first operation at %d, want it before %d", run, name, first, at["p0a"])
			}
			if exact := x["exact"][0].time; exact > at["p0a"] { // no history was removed
				t.Errorf("%s: %s: got exact from %d on, want from %d or before", run, name, exact, at["p0a"])
			}
		}
		if last := got["d_raw"]["last"][0].time; last < at["p3"] || last >= at["p4"] {
			t.Errorf("%s: d_raw: got the last operation at %d, want %d to %d, in phase p4", run, last, at["p3"],
				at["p4"])
		}
		alters := ""
		for _, e := range got["d_alter"]["schema"] {
			alters += e.what + "\n"
		}
		for _, w := range []string{" renamed to ", " added", " dropped"} {
			if !strings.Contains(alters, w) {
				t.Errorf("%s: d_alter: got\n%s\nwant %q in it", run, alters, w)
			}
		}
	}
}

// TestCorpusBlockLocations: each block in the list of blocks has the file and offset at which a CFile begins.
func TestCorpusBlockLocations(t *testing.T) {
	for _, run := range []string{"fs_file", "fs_log"} {
		files, _, _ := archive(t, run)
		lister, err := stoa.Listing("blocks", stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		blocks, inside := 0, 0
		server := format.Target{Tree: store.NewMemory(files)}
		_, err = lister.List(t.Context(), server, format.OpenOptions{}, func(v []string) {
			object, offset := v[len(v)-2], v[len(v)-1]
			at, err := strconv.Atoi(offset)
			if b := files[object]; err != nil || at+8 > len(b) || !strings.HasPrefix(string(b[at:at+8]), "kuducfl") {
				t.Errorf("%s: got no CFile in %q at %s, want one", run, object, offset)
			}
			if blocks++; at > 0 {
				inside++
			}
		})
		if err != nil || blocks < 100 || run == "fs_log" && inside == 0 {
			t.Errorf("%s: got %d blocks, %d inside a file, %v, want 100 or more", run, blocks, inside, err)
		}
	}
}
