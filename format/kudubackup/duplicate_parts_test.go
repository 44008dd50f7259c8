package kudubackup

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// TestDuplicateParts: reading and verifying reports a part under two names, under another part's name or in another
// backup, and two backups that are read as one.
func TestDuplicateParts(t *testing.T) {
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
	sparkNames := func(files map[string]string) map[string]string { // files in place of the parts
		m := maps.Clone(files)
		m["remove"] = "parts"
		return m
	}
	part := func(n int) string { return "out/" + s.Files[n] }
	for _, c := range []struct {
		name, uri string
		files     map[string]string // by name: the file whose content replaces it
		code      string            // "": no finding
	}{
		{"unchanged", dir, nil, ""},
		{"a copy", dir, map[string]string{dir + "/copy of 1.parquet": part(1)}, "dir.part.twice"},
		{"a copy under the next number", dir, map[string]string{dir + "/part-00003.parquet": part(1)}, "parquet.part"},
		{"a part of another backup", dir, map[string]string{part(1): "later/" + s2.Files[1]}, "parquet.part"},
		{"a part of another table", dir, map[string]string{part(1): "other/" + s3.Files[1]}, "parquet.part"},
		{"two backups", "out/*/*/*.parquet", map[string]string{"out/" + s2.Files[0]: "later/" + s2.Files[0],
			"out/" + s2.Files[1]: "later/" + s2.Files[1], "out/" + s2.Files[2]: "later/" + s2.Files[2],
			"out/" + s2.Files[3]: "later/" + s2.Files[3]}, "dir.part.other"},
		{"Spark's names", dir, sparkNames(map[string]string{spark(0, "12345678"): part(0),
			spark(1, "12345678"): part(1)}), ""},
		{"Spark's names, a part twice", dir, sparkNames(map[string]string{spark(0, "12345678"): part(0),
			spark(1, "12345678"): part(0)}), "dir.part.twice"},
		{"two Spark jobs", dir, sparkNames(map[string]string{spark(0, "12345678"): part(0),
			spark(1, "87654321"): part(1)}), "dir.part.other"},
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
		read := map[string]bool{}
		tab, err := stoa.Open(t.Context(), c.uri, stoa.OpenOptions{Tree: in})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, f := range tab.Findings() {
			if f.Severity >= region.Error {
				read[f.Code] = true
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
		if c.uri == dir { // and so does the backup
			asBackup(t, c.name, dir, in, c.code)
		}
		if c.code == "" && len(read)+len(verified) > 0 || c.code != "" && (!read[c.code] || !verified[c.code]) {
			t.Errorf("%s: read reports %v, verify %v, want %q", c.name, read, verified, c.code)
		}
	}
}

// asBackup checks that opening and verifying a backup report an error with this code, or none if code is empty.
func asBackup(t *testing.T, name, dir string, in store.Tree, code string) {
	t.Helper()
	o := stoa.OpenOptions{Tree: in, From: Format.Name, Formats: append(slices.Clone(stoa.Formats), Format)}
	tab, err := stoa.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer tab.Close()
	var verified []region.Finding
	for f, err := range stoa.Verify(t.Context(), dir, o) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		verified = append(verified, f)
	}
	for how, found := range map[string][]region.Finding{"read": tab.Findings(), "verified": verified} {
		found = slices.DeleteFunc(found, func(f region.Finding) bool { return f.Severity < region.Error })
		if code == "" && len(found) > 0 ||
			code != "" && !slices.ContainsFunc(found, func(f region.Finding) bool { return f.Code == code }) {
			t.Errorf("%s, %s as a backup: %+v, want %q", name, how, found, code)
		}
	}
}
