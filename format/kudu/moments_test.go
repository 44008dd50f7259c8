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

// historyIn gives the events of tables, by table and kind.
func historyIn(t *testing.T, tree store.Tree) map[string]map[string][]event {
	t.Helper()
	how, err := stoa.Listing("history", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string][]event{}
	_, err = how.List(t.Context(), format.Target{Tree: tree}, format.OpenOptions{}, func(v []string) {
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

// What history says of real tables is what their generator did, at the times that its client took down: rows inserted
// before phase p0a ended, the last operation right before the last snapshot of the table that was written to last, 50
// rows and 75 updates of that only in the log, and the changes of d_alter's schema.
func TestCorpusHistory(t *testing.T) {
	dir := corpus(t)
	for run, taken := range map[string]string{"fs_file": "file_ck", "fs_log": "log_ck"} {
		files, _, _ := archive(t, run)
		told := historyIn(t, store.NewMemory(files))
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
		wal := told["d_wal"]
		if len(wal["first"]) != 1 || len(wal["last"]) != 1 || len(wal["log"]) != 1 {
			t.Fatalf("%s: %+v", run, wal)
		}
		if last := wal["last"][0].time; last+1 != at["final"] {
			t.Errorf("%s: the last operation at %d; the snapshot right after it is %d", run, last, at["final"])
		}
		if wal["log"][0].ops != "125" {
			t.Errorf("%s: %s operations are only in the log, not 50 rows and 75 updates", run, wal["log"][0].ops)
		}
		for _, name := range []string{"d_raw", "d_minor", "d_major", "d_rowset", "d_wal"} {
			x := told[name]
			if first := x["first"][0].time; first == 0 || first >= at["p0a"] {
				t.Errorf("%s: %s begins at %d, after its rows were there (%d)", run, name, first, at["p0a"])
			}
			if exact := x["exact"][0].time; exact > at["p0a"] { // all of its history was kept
				t.Errorf("%s: %s is exact only from %d on", run, name, exact)
			}
		}
		if last := told["d_raw"]["last"][0].time; last < at["p3"] || last >= at["p4"] {
			t.Errorf("%s: d_raw ends at %d, not in phase p4 (%d to %d)", run, last, at["p3"], at["p4"])
		}
		alters := ""
		for _, e := range told["d_alter"]["schema"] {
			alters += e.what + "\n"
		}
		for _, w := range []string{" renamed to ", " added", " dropped"} {
			if !strings.Contains(alters, w) {
				t.Errorf("%s: d_alter:\n%s: nothing was%s", run, alters, w)
			}
		}
	}
}

// The list of blocks says of each where it lies: at that place of that file a CFile begins.
func TestCorpusBlocksLieThere(t *testing.T) {
	for _, run := range []string{"fs_file", "fs_log"} {
		files, _, _ := archive(t, run)
		how, err := stoa.Listing("blocks", stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		blocks, within := 0, 0
		place := format.Target{Tree: store.NewMemory(files)}
		_, err = how.List(t.Context(), place, format.OpenOptions{}, func(v []string) {
			object, offset := v[len(v)-2], v[len(v)-1]
			at, err := strconv.Atoi(offset)
			if b := files[object]; err != nil || at+8 > len(b) || !strings.HasPrefix(string(b[at:at+8]), "kuducfl") {
				t.Errorf("%s: %q has no CFile at %s", run, object, offset)
			}
			if blocks++; at > 0 {
				within++
			}
		})
		if err != nil || blocks < 100 || run == "fs_log" && within == 0 {
			t.Errorf("%s: %d blocks, %d within a file, %v", run, blocks, within, err)
		}
	}
}
