package formattest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// depths: a healthy file has no findings at any depth; a shallower depth does not read more; and Sums reports the same
// checksum errors as Deep.
func (s Suite) depths(t *testing.T) {
	if s.Format.Verify == nil {
		t.Skip("the format verifies nothing")
	}
	tab := s.wide(t, 11)
	verify := func(tree store.Tree, d format.Depth) (out []region.Finding) {
		o := format.OpenOptions{Limits: format.Limits{}.WithDefaults(), Depth: d}
		return slices.Collect(s.Format.Verify(context.Background(), format.Target{Tree: tree, Name: tab.name}, o))
	}
	read := map[format.Depth]int64{}
	for _, d := range []format.Depth{format.Deep, format.Sums, format.Quick} {
		c := store.NewCounter(tab.mem)
		for _, f := range verify(c, d) {
			t.Errorf("%s: finding in a healthy file: %s %s: %s", d, f.Code, f.At, f.Message)
		}
		for _, r := range c.Reads() {
			read[d] += int64(r.Len)
		}
	}
	if read[format.Quick] > read[format.Sums] || read[format.Sums] > read[format.Deep] {
		t.Errorf("bytes read: quick %d, sums %d, deep %d; want them ascending", read[format.Quick],
			read[format.Sums], read[format.Deep])
	}
	sums, all := 0, 0
	eachFlip(tab.mem, func(tree store.Tree, name string, at int) {
		found := verify(tree, format.Sums)
		for _, f := range verify(tree, format.Deep) {
			if f.Severity != region.Error {
				continue
			}
			all++
			if !strings.Contains(f.Code, "checksum") && !strings.Contains(f.Code, ".crc") {
				continue
			}
			sums++
			if !slices.ContainsFunc(found,
				func(g region.Finding) bool { return g.Code == f.Code && g.At == f.At && g.Rows == f.Rows }) {
				t.Errorf("%s[%d]: deep reports %s %s rows %v, sums reports %v", name, at, f.Code, f.At, f.Rows, found)
			}
		}
	})
	t.Logf("bytes read: quick %d, sums %d, deep %d; %d errors reported, %d of them checksums", read[format.Quick],
		read[format.Sums], read[format.Deep], all, sums)
}

// eachFlip calls try with copies of the files of mem, each with one bit flipped: in byte at of file name. It tries
// about 60 bits, in the short form 20.
func eachFlip(mem *store.Memory, try func(tree store.Tree, name string, at int)) {
	total, flips := 0, 60
	for _, name := range mem.Names() {
		total += len(mem.Bytes(name))
	}
	if testing.Short() {
		flips = 20
	}
	step := max(1, total/flips)
	for _, name := range mem.Names() {
		b := mem.Bytes(name)
		for at := min(step, len(b)) / 2; at < len(b); at += step {
			files := map[string][]byte{}
			for _, n := range mem.Names() {
				files[n] = mem.Bytes(n)
			}
			files[name] = slices.Clone(b)
			files[name][at] ^= 0x04
			try(store.NewMemory(files), name, at)
		}
	}
}

// Partition checks that the leaves of nodes claim each of object's size bytes exactly once.
func Partition(t testing.TB, nodes []region.Node, object string, size int64) {
	t.Helper()
	var leaves []fault.Span
	for i, n := range nodes {
		leaf := i+1 == len(nodes) || nodes[i+1].Depth <= n.Depth || nodes[i+1].Inner >= 0
		if n.At.Object != object || !leaf || n.Inner >= 0 || n.At.Len == 0 {
			continue
		}
		if n.Kind == region.Gap {
			t.Errorf("%s: no node claims %s", object, n.At)
		}
		leaves = append(leaves, n.At)
	}
	slices.SortFunc(leaves, func(a, b fault.Span) int { return int(a.Off - b.Off) })
	at := int64(0)
	for _, l := range leaves {
		if l.Off != at {
			t.Errorf("%s: bytes %d to %d are claimed twice or not at all", object, min(at, l.Off), max(at, l.Off))
			return
		}
		at = l.End()
	}
	if at != size {
		t.Errorf("%s: the leaves end at %d, want %d, the end of the file", object, at, size)
	}
}
