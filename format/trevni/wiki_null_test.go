package trevni_test

import (
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/store"
)

// TestWikiNull: a column of the wiki's type Null has no values and no bytes, whether it is required, repeated or
// optional.
func TestWikiNull(t *testing.T) {
	for name, c := range map[string]struct {
		pairs []string
		block handBlock
		rows  int64
		want  string
	}{
		"required": {[]string{"Name", "n", "Type", "Null"}, handBlock{3, 0, 0, ""}, 3, "[nullnullnull]"},
		"optional": {[]string{"Name", "n", "Type", "Null", "MaxDefinition", "1"},
			handBlock{3, 1, 1, "\x05"}, 3, "[nullnullnull]"},
		"repeated": {[]string{"Name", "n", "Type", "Null", "MaxDefinition", "1", "MaxRepetition", "1"},
			handBlock{4, 2, 2, "\x0b\x02"}, 3, "[[nullnull][][null]]"},
		"in a struct": {[]string{"Name", "s.n", "Type", "Null"}, handBlock{3, 0, 0, ""}, 3, ""},
		"in a repeated group": {[]string{"Name", "g.n", "Type", "Null", "MaxDefinition", "1", "MaxRepetition", "1"},
			handBlock{4, 2, 2, "\x0b\x02"}, 3, ""},
	} {
		file := handFile(1, c.rows, handMeta(), [][]byte{handMeta(c.pairs...)}, handColumn(c.block))
		got, err := scanAll(t.Context(), file, scan.Spec{}, false)
		if got = strings.NewReplacer(" ", "", "\n", "", ",", "", "(null)", "null").Replace(got); err != nil ||
			c.want != "" && got != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if name == "required" {
			r, err := trevni.Format.Open(t.Context(),
				format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": file}), Name: "f.trv"},
				format.OpenOptions{})
			if err != nil || !r.Schema().Field(0).Nullable {
				t.Errorf("%s: %v: nulls in a column that cannot have them", name, err)
			}
		}
		if found := verified(t, file, nil); anyError(found) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
