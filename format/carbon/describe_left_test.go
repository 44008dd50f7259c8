package carbon_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
)

// TestDescribeLeftovers: if any file of a table is truncated, describe fails only if verify has an error. For an unused
// file that cannot be described it has a node that states this.
func TestDescribeLeftovers(t *testing.T) {
	notes, failed := 0, 0
	for _, name := range []string{"managed_compact", "managed_del", "managed_part",
		"../../1.0.0/v1_complex"} {
		place := filepath.Join(golden2, "managed", name)
		for _, n := range loaded(t, place).Names() {
			tree := loaded(t, place)
			b := tree.Bytes(n)
			tree.Put(n, b[:len(b)/2])
			wrong := slices.ContainsFunc(verdict(t, tree),
				func(f region.Finding) bool { return f.Severity == region.Error })
			tg := format.Target{Tree: tree, Name: "t"}
			stated := false
			for node, err := range carbon.Format.Describe(t.Context(), tg, format.DescribeOptions{}) {
				if err != nil && !wrong {
					t.Errorf("%s: verify: got no error, describe %v", n, err)
				}
				if err != nil {
					failed++
				}
				stated = stated || strings.HasPrefix(node.Value, "damaged, and not needed") && node.At.Object == n
			}
			if stated {
				notes++
			}
			if stated && wrong {
				t.Errorf("%s: got a node for an unused file, but the file is used", n)
			}
		}
	}
	if notes < 5 || failed < 10 {
		t.Errorf("got %d unused files reported, and %d errors; two segments were compacted, of four files, "+
			"and dictionaries have sort indexes", notes, failed)
	}
}
