package store_test

import (
	"slices"
	"testing"

	"stoa/store"
)

// The place is the longest that exists; if none does, the table is what follows the last #.
func TestTableAt(t *testing.T) {
	for _, x := range []struct {
		name   string
		exist  []string
		at     int
		lookUp bool
	}{
		{"dir", nil, -1, false},
		{"dir#x", nil, 3, false},
		{"#x", nil, 0, false},
		{"dir#x#y", nil, 5, true},
		{"dir#x#y", []string{"dir"}, 3, true},
		{"dir#x#y", []string{"dir", "dir#x"}, 5, true},
		{"dir##", []string{"dir"}, 3, true},
		{"#x#y", []string{""}, 0, true},
		{"@#a#b#c", []string{"@"}, 1, true},
	} {
		asked := false
		at := store.TableAt(x.name, func(place string) bool {
			asked = true
			return slices.Contains(x.exist, place)
		})
		if at != x.at || asked != x.lookUp {
			t.Errorf("%s, where %q exist: %d, looked up %v, want %d, %v", x.name, x.exist, at, asked, x.at, x.lookUp)
		}
	}
}
