package kudu_test

import (
	"strings"
	"testing"

	"stoa"
	"stoa/format/kudu"
	"stoa/pred"
	"stoa/store"
)

// TestArrays: arrays come from base columns, a default, delta files in both directions, and a log; filters see them.
func TestArrays(t *testing.T) {
	tree := store.NewMemory(kudu.ArrayServer(t))
	for f, err := range stoa.Verify(t.Context(), "w", stoa.OpenOptions{Tree: tree}) {
		if err != nil || f.Severity > 0 && !strings.Contains(f.Code, "bloom") && f.Code != "kudu.cmeta.damaged" {
			t.Error(f, err)
		}
	}
	for _, c := range []struct{ at, where, want string }{
		{"", "", `0 [8,null,9] [7,null]; 1 [null] [7,null]; 2 [] []; 3 [null,5] [7,null]; 9 [6,6] [7,null]`},
		{"4", "", `0 [1,2] [7,null]; 1 null [7,null]; 2 [] [7,null]; 3 [null,5] [7,null]`},
		{"2", "", `0 [1,2] [7,null]; 1 null [7,null]; 2 [] [7,null]; 3 [4] [7,null]`},
		{"", "len(a) = 2", `3 [null,5] [7,null]; 9 [6,6] [7,null]`},
		{"", "len(d) = 0", `2 [] []`},
		{"", "array_contains(a, 9)", `0 [8,null,9] [7,null]`},
		{"4", "array_contains(a, 2)", `0 [1,2] [7,null]`},
		{"", "array_contains(d, 7) and k > 1", `3 [null,5] [7,null]; 9 [6,6] [7,null]`},
	} {
		o := map[string]string{}
		if c.at != "" {
			o["at"], o["partial"] = c.at, "true"
		}
		var spec stoa.ScanSpec
		if c.where != "" {
			var err error
			if spec.Filter, err = pred.Parse(c.where); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(rowsOf(t, openedIn(t, tree, "w", o), spec), "; "); got != c.want {
			t.Errorf("at %q where %q: got %s, want %s", c.at, c.where, got, c.want)
		}
	}
}
