package laws_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format/parquet"
	"stoa/region"
	"stoa/store"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestSparkPartsThatAreMissing: verify and list report a missing file of a Spark job, such as Kudu's backup, for each
// kind of trace that it leaves. That further files may be missing is a note, unless a list of all files exists.
func TestSparkPartsThatAreMissing(t *testing.T) {
	one, err := heldPlace(parquet.Format, []arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}})
	if err != nil {
		t.Fatal(err)
	}
	part := func(task, file string) string {
		return "part-" + task + "-0e3f8a52-6c1d-4c3e-9d6a-2f1b7a90c4d1-c" + file + ".snappy.parquet"
	}
	first, last := part("00000", "000"), part("00003", "001") // tasks without rows write nothing
	list := `{"name":"committer","filenames":["/b/` + first + `","/b/` + last + `"]}`
	for what, c := range map[string]struct {
		files   map[string]string // files besides the first
		missing string
		unknown bool
	}{
		"as it was written":        {map[string]string{"_SUCCESS": ""}, "", true},
		"with others":              {map[string]string{part("00003", "000"): "", last: "", "_SUCCESS": ""}, "", true},
		"a checksum is left":       {map[string]string{"." + last + ".crc": "crc"}, last, true},
		"a later one is there":     {map[string]string{last: ""}, part("00003", "000"), true},
		"a list names it":          {map[string]string{"_SUCCESS": list}, last, false},
		"a list that is not whole": {map[string]string{"_SUCCESS": list[:40]}, "", true},
		"a list, and all are there": {map[string]string{"_SUCCESS": list, part("00003", "000"): "", last: ""},
			"", false},
		"a checksum of another kind": {map[string]string{".other-00001.parquet.crc": "crc"}, "", true},
	} {
		files := map[string][]byte{"b/" + first: one.files[one.at]}
		for name, text := range c.files {
			if files["b/"+name] = []byte(text); strings.HasPrefix(name, "part-") {
				files["b/"+name] = one.files[one.at]
			}
		}
		o := stoa.OpenOptions{Tree: store.NewMemory(files), Formats: everyFormat}
		var missing []string
		unknown := false
		for f, err := range stoa.Verify(t.Context(), "b", o) {
			if err != nil {
				t.Fatal(err)
			}
			if unknown = unknown || f.Code == "dir.part.unknown"; f.Severity == region.Error {
				missing = append(missing, strings.TrimPrefix(f.Part, "b/"))
			}
		}
		want := slices.DeleteFunc([]string{c.missing}, func(s string) bool { return s == "" })
		if unknown != c.unknown || !slices.Equal(missing, want) {
			t.Errorf("%s: reported missing %v, want %v; noted %v, want %v", what, missing, want, unknown, c.unknown)
		}
		reported := false
		for e, err := range stoa.List(t.Context(), "b", o) {
			reported = reported || errors.Is(err, fault.Corrupt) && strings.HasSuffix(e.Place, c.missing)
		}
		if reported != (c.missing != "") {
			t.Errorf("%s: listing reports %v", what, reported)
		}
	}
}
