package kudu_test

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/store"
)

// TestServerInEveryDirectory: a server's directories below any directory of another are found, with all rows, or are
// an error of the census that names the directory: they are never overlooked.
func TestServerInEveryDirectory(t *testing.T) {
	inner := load(t, "testdata/history")
	for name := range inner {
		if path.Base(name) == "instance" { // another server
			inner[name] = pbc.Append(nil, "kudu.InstanceMetadataPB",
				pb.AppendString(nil, 1, "0123456789abcdef0123456789abcdef"))
		}
	}
	want := expectedLines(t, "testdata", "d_major", "final")
	census, err := stoa.Listing("census", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, outer := range []string{"testdata/file", "testdata/log"} {
		files, dirs := map[string][]byte{}, map[string]bool{}
		for name, b := range load(t, outer) {
			name = "w/" + name
			files[name] = b
			for d := path.Dir(name); d != "."; d = path.Dir(d) {
				dirs[d] = true
			}
		}
		for id := range strings.SplitSeq("00000000000000000000000000000001 00000000000000000000000000000002", " ") {
			files["w/wal/wals/"+id+"/wal-000000001"] = nil
			dirs["w/wal/wals/"+id], dirs["w/wal/wals"] = true, true
		}
		opened, told := 0, 0
		for i, dir := range slices.Sorted(maps.Keys(dirs)) {
			if testing.Short() && i%4 > 0 && strings.Count(dir, "/") > 3 {
				continue
			}
			both := maps.Clone(files)
			for name, b := range inner {
				both[dir+"/old/"+name] = b
			}
			tree := store.NewMemory(both)
			if rows, _, err := readAll(t, tree, "w#d_major", nil, stoa.ScanSpec{}); err == nil {
				if opened++; len(rows) != len(want) {
					t.Errorf("%s: got %d rows, want %d", dir, len(rows), len(want))
				}
				continue
			}
			found, err := census.List(context.Background(), format.Target{Tree: tree, Name: "w"}, format.OpenOptions{},
				func([]string) {})
			if told++; err != nil || !slices.ContainsFunc(found, func(x region.Finding) bool {
				return x.Severity >= region.Error && x.At.Object == dir
			}) {
				t.Errorf("%s: got %v, %v: it is neither read nor told", dir, found, err)
			}
		}
		if opened < 3 || outer == "testdata/file" && told < 3 {
			t.Errorf("%s: %d servers were read, %d told", outer, opened, told)
		}
		t.Logf("%s: %d read, %d told", outer, opened, told)
	}
}
