package kudu_test

import (
	"errors"
	"maps"
	"math"
	"path"
	"strconv"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// TestConservation: tables that can be opened, and entries that tell that they cannot, are as many as the
// directories held, whatever is lost of a tablet; a list has an error finding, verify has one, and what is
// listed as lost cannot be opened without an error. Directories of which nothing is lost have no such finding,
// though blocks that superblocks list as orphaned lie in them.
func TestConservation(t *testing.T) {
	places := map[string]map[string][]byte{"testdata": load(t, "testdata/history")}
	if dir := corpusOr(""); dir != "" {
		places["file"], places["log"] = load(t, path.Join(dir, "kudu", "fs_file")),
			load(t, path.Join(dir, "kudu", "fs_log"))
	}
	for name, files := range places {
		t.Run(name, func(t *testing.T) { conserved(t, files) })
	}
}

func conserved(t *testing.T, files map[string][]byte) {
	tree := store.NewMemory(files)
	_, tablets := layout(t, tree)
	whole := entries(t, tree, "")
	for _, e := range whole {
		if bad := codes(e.Findings, region.Error); bad != "" {
			t.Errorf("%s, of which nothing is lost: %s", e.Table, bad)
		}
	}
	of := map[string]int{}
	for _, tb := range tablets {
		of[tb.TableID]++
	}
	for i, tb := range tablets {
		if of[tb.TableID] > 1 || len(tb.RowSets) == 0 || len(tablets) > 1 && i%9 != 4 {
			continue // some; a table with other tablets is told to miss one: TestCorpusCatalog
		}
		for _, how := range []string{"removed", "cut", "nothing but blocks"} {
			if how == "nothing but blocks" && len(tablets) == 1 {
				continue // no server's directory is left then, which is an error
			}
			less := maps.Clone(files)
			switch how {
			case "cut":
				less[tb.Object] = less[tb.Object][:len(less[tb.Object])/2]
			default:
				delete(less, tb.Object)
			}
			if how == "nothing but blocks" {
				maps.DeleteFunc(less, func(name string, _ []byte) bool { return strings.Contains(name, tb.ID) })
			}
			tree := store.NewMemory(less)
			told := ""
			left := entries(t, tree, "")
			for key, e := range left {
				told += codes(e.Findings, region.Error)
				if _, there := whole[key]; there {
					continue
				}
				if e.Rows >= 0 {
					t.Errorf("%s %s: %s, which is lost, has %d rows", tb.Table, how, key, e.Rows)
				}
				if x, err := stoa.Open(t.Context(), "#"+key, stoa.OpenOptions{Tree: tree}); !errors.Is(err,
					fault.Corrupt) {
					t.Errorf("%s %s: %s, which is lost, opens: %v", tb.Table, how, key, err)
					if err == nil {
						x.Close()
					}
				}
			}
			if len(left) != len(whole) || told == "" {
				t.Errorf("%s %s: %d of %d tables are told, errors %q", tb.Table, how, len(left), len(whole), told)
			}
			if bad, _ := findings(t, tree, "", ""); codes(bad, region.Error) == "" {
				t.Errorf("%s %s: verify finds nothing", tb.Table, how)
			}
		}
	}
}

// TestMoments: a snapshot before a table's first operation, or behind the last that is known, is refused with
// the moments that there are; with partial=true it is read, and told. Between, none is.
func TestMoments(t *testing.T) {
	tree := store.NewMemory(load(t, "testdata/history"))
	read := func(at uint64, partial string) (scanned, error) {
		return scan(t, tree, "#d_major", map[string]string{"at": strconv.FormatUint(at, 10), "partial": partial},
			stoa.ScanSpec{})
	}
	all, err := scan(t, tree, "#d_major", nil, stoa.ScanSpec{})
	if err != nil || len(all.cells) == 0 {
		t.Fatal(err, len(all.cells))
	}
	_, err = read(1, "false")
	var first, last uint64
	if !errors.Is(err, fault.Unsupported) {
		t.Fatal(err)
	}
	words := strings.Fields(err.Error())
	for i, w := range words {
		switch w {
		case "from":
			first, _ = strconv.ParseUint(words[i+1], 10, 64)
		case "to":
			last, _ = strconv.ParseUint(words[i+1], 10, 64)
		}
	}
	if first == 0 || last <= first || !strings.Contains(err.Error(), "Z)") {
		t.Fatal(err)
	}
	for _, x := range []struct {
		at      uint64
		refused bool
		rows    int // -1: some
	}{{1, true, 0}, {first, true, 0}, {first + 1, false, -1}, {last, false, -1}, {last + 1, false, len(all.cells)},
		{math.MaxUint64 - 1, true, len(all.cells)}} {
		got, err := read(x.at, "false")
		if x.refused != errors.Is(err, fault.Unsupported) || !x.refused &&
			(err != nil || x.rows >= 0 && len(got.cells) != x.rows || len(got.cells) == 0) {
			t.Errorf("at %d: %d rows, %v", x.at, len(got.cells), err)
		}
		if !x.refused {
			continue
		}
		got, err = read(x.at, "true")
		if err != nil || len(got.cells) != x.rows ||
			!strings.Contains(codes(got.findings, region.Warning), "kudu.snapshot.outside") {
			t.Errorf("at %d, partial: %d rows, %v, %v", x.at, len(got.cells), err, got.findings)
		}
	}
}
