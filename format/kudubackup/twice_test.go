package kudubackup

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// TestRowsOfBackupsComeOnce: parts of a backup that lie under two names, under another's, or in another backup, and two
// backups that are read as one, are an error to whoever reads or verifies them.
func TestRowsOfBackupsComeOnce(t *testing.T) {
	b := smallBatch(t, 30)
	defer b.Release()
	opts := func(time, table string) map[string]string {
		return map[string]string{"key": "k", "part-rows": "10", "table": table, "time": time}
	}
	tree, s := backup(t, b.Schema(), opts("1700000000000", "t"), b)
	later, s2 := backup(t, b.Schema(), opts("1700000005000", "t"), b)
	other, s3 := backup(t, b.Schema(), opts("1700000000000", "u"), b)
	dir := "out/" + path.Dir(s.Files[0])
	spark := func(task int, job string) string {
		return fmt.Sprintf("%s/part-%05d-%s-d1f4-4a2b-8c3d-0123456789ab-c000.snappy.parquet", dir, task, job)
	}
	without := func(files map[string]string) (m map[string]string) { // the parts under Spark's names
		m = map[string]string{"remove": "parts"}
		for k, v := range files {
			m[k] = v
		}
		return m
	}
	part := func(n int) string { return "out/" + s.Files[n] }
	for _, c := range []struct {
		name, uri string
		files     map[string]string // NAME: what of
		code      string
	}{
		{"as it is", dir, nil, ""},
		{"under a name of its own", dir, map[string]string{dir + "/copy of 1.parquet": part(1)}, "dir.part.twice"},
		{"under the next number", dir, map[string]string{dir + "/part-00003.parquet": part(1)}, "parquet.part"},
		{"of another backup", dir, map[string]string{part(1): "later/" + s2.Files[1]}, "parquet.part"},
		{"of another table", dir, map[string]string{part(1): "other/" + s3.Files[1]}, "parquet.part"},
		{"two backups", "out/*/*/*.parquet", map[string]string{"out/" + s2.Files[0]: "later/" + s2.Files[0],
			"out/" + s2.Files[1]: "later/" + s2.Files[1], "out/" + s2.Files[2]: "later/" + s2.Files[2],
			"out/" + s2.Files[3]: "later/" + s2.Files[3]}, "dir.part.other"},
		{"of Kudu's job", dir, without(map[string]string{spark(0, "12345678"): part(0),
			spark(1, "12345678"): part(1)}), ""},
		{"of Kudu's job, twice", dir, without(map[string]string{spark(0, "12345678"): part(0),
			spark(1, "12345678"): part(0)}), "dir.part.twice"},
		{"of two jobs", dir, without(map[string]string{spark(0, "12345678"): part(0), spark(1, "87654321"): part(1)}),
			"dir.part.other"},
	} {
		in := store.NewMemory(nil)
		for _, n := range tree.Names() {
			if c.files["remove"] == "" || !strings.HasSuffix(n, ".parquet") {
				in.Put(n, tree.Bytes(n))
			}
		}
		for name, of := range c.files {
			from, file, _ := strings.Cut(of, "/")
			switch from {
			case "out":
				in.Put(name, tree.Bytes(of))
			case "later":
				in.Put(name, later.Bytes("out/"+file))
			case "other":
				in.Put(name, other.Bytes("out/"+file))
			}
		}
		said := map[string]bool{}
		tab, err := stoa.Open(t.Context(), c.uri, stoa.OpenOptions{Tree: in})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, f := range tab.Findings() {
			if f.Severity >= region.Error {
				said[f.Code] = true
			}
		}
		tab.Close()
		verified := map[string]bool{}
		for f, err := range stoa.Verify(t.Context(), c.uri, stoa.OpenOptions{Tree: in}) {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if f.Severity >= region.Error {
				verified[f.Code] = true
			}
		}
		if c.code == "" && len(said)+len(verified) > 0 || c.code != "" && (!said[c.code] || !verified[c.code]) {
			t.Errorf("%s: reading says %v, verify %v, want %q", c.name, said, verified, c.code)
		}
	}
}
