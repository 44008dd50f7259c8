package carbon_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestDescribeLeftovers: if any file of a table is truncated, or has more bytes, describe fails only if verify has an
// error. For an unused file that cannot be described it has a node that states this.
func TestDescribeLeftovers(t *testing.T) {
	notes, failed := 0, 0
	for _, name := range []string{"managed_compact", "managed_del", "managed_part",
		"../../1.0.0/v1_complex"} {
		place := filepath.Join(golden2, "managed", name)
		for _, n := range loaded(t, place).Names() {
			for _, longer := range []bool{false, true} {
				tree := loaded(t, place)
				b := tree.Bytes(n)
				if longer {
					tree.Put(n, slices.Concat(b, b[:min(6, len(b))]))
				} else {
					tree.Put(n, b[:len(b)/2])
				}
				stated, err := describedLike(t, tree, n)
				if err {
					failed++
				}
				if stated {
					notes++
				}
			}
		}
	}
	if notes < 5 || failed < 10 {
		t.Errorf("got %d unused files reported, and %d errors; two segments were compacted, of four files, "+
			"and dictionaries have sort indexes", notes, failed)
	}
}

// describedLike compares what describe says of a table with one harmed file with what verify says. stated: a node says
// that the file is damaged and not needed.
func describedLike(t *testing.T, tree *store.Memory, harmed string) (stated, failed bool) {
	t.Helper()
	wrong := slices.ContainsFunc(verdict(t, tree), func(f region.Finding) bool { return f.Severity == region.Error })
	tg := format.Target{Tree: tree, Name: "t"}
	for node, err := range carbon.Format.Describe(t.Context(), tg, format.DescribeOptions{}) {
		if err != nil && !wrong {
			t.Errorf("%s: verify: got no error, describe %v", harmed, err)
		}
		failed = failed || err != nil
		stated = stated || strings.HasPrefix(node.Value, "damaged, and not needed") && node.At.Object == harmed
	}
	if stated && wrong {
		t.Errorf("%s: got a node for an unused file, but the file is used", harmed)
	}
	return stated, failed
}
