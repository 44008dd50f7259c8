package kudu_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// at=last is what the client read at the end, at=first the state right after the first operation, whose time is in the
// error about an earlier snapshot. A day means its beginning.
func TestCorpusEnds(t *testing.T) {
	dir := corpus(t)
	files, _, _ := archive(t, "fs_file")
	tree := store.NewMemory(files)
	read := func(at string) ([]string, error) {
		got, err := scan(t, tree, "#d_wal", map[string]string{"at": at}, stoa.ScanSpec{})
		if err != nil {
			return nil, err
		}
		return got.lines(), nil
	}
	last, err := read("last")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, last, expected(t, dir, "d_wal", "final"))

	_, err = read("1")
	if err == nil {
		t.Fatal("a snapshot before all operations was read")
	}
	m := regexp.MustCompile(`from (\d+) \((\d{4}-\d\d-\d\d)T`).FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatal(err)
	}
	begun, err := strconv.ParseUint(m[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	first, err := read("first")
	if err != nil || len(first) == 0 || len(first) >= len(last) {
		t.Fatalf("%d rows after the first operation, %d in the end, %v", len(first), len(last), err)
	}
	same, err := read(fmt.Sprint(begun + 1))
	if err != nil || strings.Join(same, "\n") != strings.Join(first, "\n") {
		t.Errorf("at %d: %d rows, not %d, %v", begun+1, len(same), len(first), err)
	}
	day, err := time.Parse(time.DateOnly, m[2])
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []int{0, 7} { // before the first operation, and after the last
		if _, err := read(day.AddDate(0, 0, d).Format(time.DateOnly)); err == nil ||
			!strings.Contains(err.Error(), "has operations from "+m[1]) {
			t.Errorf("%d days later: %v", d, err)
		}
	}
}

// TestMomentsOfHistoryAreRead: the moment from which a table's history says that snapshots are exact is one that at=
// takes, as a hybrid time and as a calendar time, whether history is whole or was removed.
func TestMomentsOfHistoryAreRead(t *testing.T) {
	whole, _, _ := archive(t, "fs_file")
	for what, files := range map[string]map[string][]byte{"whole": whole, "few": load(t, "testdata/history"),
		"removed": withoutSomeUndo(t)} {
		tree := store.NewMemory(files)
		lister, err := stoa.Listing("history", stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		exact := map[string][2]string{}
		if _, err := lister.List(t.Context(), format.Target{Tree: tree}, format.OpenOptions{}, func(v []string) {
			if v[5] == "exact" && v[6] > exact[v[0]][0] { // they have the same number of digits
				exact[v[0]] = [2]string{v[6], v[7]}
			}
		}); err != nil || len(exact) == 0 {
			t.Fatal(what, err)
		}
		for name, moments := range exact {
			for _, at := range moments {
				got, err := scan(t, tree, "#"+name, map[string]string{"at": at}, stoa.ScanSpec{Limit: 1})
				if err != nil || codes(got.findings, region.Error) != "" {
					t.Errorf("%s: %s at %s: %v, %s", what, name, at, err, codes(got.findings, region.Error))
				}
			}
		}
	}
}

// withoutSomeUndo returns a server whose table has lost its oldest history.
func withoutSomeUndo(t *testing.T) map[string][]byte {
	t.Helper()
	files := load(t, "testdata/history")
	_, tablets := layout(t, store.NewMemory(files))
	set := tablets[0].RowSets[0]
	files[tablets[0].Object] = kudu.WithoutUndo(t, files[tablets[0].Object], set.Undo[len(set.Undo)-1].ID)
	return files
}
