package trevni_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/trevni"
	"stoa/region"
	"stoa/store"
	"stoa/store/faulty"
)

// TestOverlap: two columns that start at the same offset claim the same bytes.
func TestOverlap(t *testing.T) {
	column := handColumn(handBlock{2, 2, 2, "\x02\x04"})
	file := handFile(2, 2, handMeta(), [][]byte{handMeta("trevni.name", "x", "trevni.type", "int"),
		handMeta("trevni.name", "y", "trevni.type", "int")}, column, nil)
	start := int64(len(file) - len(column))
	binary.LittleEndian.PutUint64(file[start-8:], uint64(start)) // of y, which has no bytes of its own
	found := slices.DeleteFunc(verified(t, file, nil),
		func(f region.Finding) bool { return f.Code != "trevni.coverage.overlap" })
	if len(found) != 1 || found[0].Severity != region.Error || found[0].At.Off != start ||
		found[0].At.Len != int64(len(column)) {
		t.Errorf("%+v", found)
	}
}

// TestRunsBeforeVersion2: runs of lengths in a file of version 1 are read, and reported.
func TestRunsBeforeVersion2(t *testing.T) {
	runs := zigzag(3 - 2*3) // of 3 lengths of 0
	file := func(version byte) []byte {
		return handFile(version, 3, handMeta(),
			[][]byte{handMeta("trevni.name", "x", "trevni.type", "int", "trevni.array", "")},
			handColumn(handBlock{3, len(runs), len(runs), string(runs)}))
	}
	if got, err := scanHand(t, file(1), format.OpenOptions{}); strings.Join(strings.Fields(got),
		"") != "[[],[],[]]" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	b := file(1)
	block := int64(len(b) - len(runs))
	if found := verified(t, b, nil); len(found) != 1 || found[0].Code != "trevni.lengths.runs" ||
		found[0].Severity != region.Warning || found[0].At.Off != block || found[0].Column != "x" {
		t.Errorf("%+v", found)
	}
	if found := verified(t, file(2), nil); len(found) > 0 {
		t.Errorf("version 2: %+v", found)
	}
}

// TestOrder: the first values of a column declared as sorted descend, and one of them is not that of its block.
func TestOrder(t *testing.T) {
	le := binary.LittleEndian
	column := le.AppendUint32(nil, 2)
	for _, first := range []int64{5, 3} {
		column = le.AppendUint32(le.AppendUint32(le.AppendUint32(column, 2), 2), 2)
		column = append(column, zigzag(first)...)
	}
	column = slices.Concat(column, zigzag(5), zigzag(6), zigzag(3), zigzag(4))
	file := handFile(2, 4, handMeta(), [][]byte{handMeta("trevni.name", "x", "trevni.type", "long", "trevni.values",
		"")}, column)
	if found := verified(t, file, nil); len(found) > 0 {
		t.Errorf("a column that is not declared as sorted: %+v", found)
	}
	second := int64(len(file)-len(column)) + 4 + 13
	if found := verified(t, file, map[string]string{"sorted": "x"}); len(found) != 1 ||
		found[0].Code != "trevni.order" || found[0].Severity != region.Error || found[0].At.Off != second ||
		found[0].Column != "x" {
		t.Errorf("%+v, want the descriptor at %d", found, second)
	}
	file[second+12] = 2 * 4 // the block begins with 3
	if found := verified(t, file, nil); len(found) != 1 || found[0].Code != "trevni.firstvalue" ||
		found[0].Severity != region.Error || found[0].At.Off != second || found[0].Column != "x" {
		t.Errorf("another first value: %+v, want the descriptor at %d", found, second)
	}
}

// TestReadCode: a store that fails is not damage: verify reports it under a separate code, and nothing else.
func TestReadCode(t *testing.T) {
	for name, data := range samples(t) {
		whole, reported := verified(t, data, nil), 0
		for k := int64(0); ; k++ {
			tree := &faulty.Tree{Tree: store.NewMemory(map[string][]byte{"f.trv": data}), At: k, Mode: faulty.Fail}
			found := slices.Collect(trevni.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "f.trv"},
				format.OpenOptions{}))
			if !tree.Hit.Load() {
				break
			}
			for _, f := range found {
				if f.Code == "trevni.read" && f.Severity == region.Error {
					reported++
				} else if !slices.ContainsFunc(whole,
					func(w region.Finding) bool { return w.Code == f.Code && w.At.Off == f.At.Off }) {
					t.Errorf("%s: operation %d fails: %+v", name, k, f)
				}
			}
		}
		if reported == 0 {
			t.Errorf("%s: nothing was reported", name)
		}
	}
}

// TestRecoveredMagic: a file with a damaged magic is recovered, and the damage is reported.
func TestRecoveredMagic(t *testing.T) {
	raw := "\x02\x04"
	file := handFile(2, 2, handMeta(), [][]byte{handMeta("trevni.name", "x", "trevni.type", "int")},
		handColumn(handBlock{2, 2, 2, raw}))
	bad := bytes.Clone(file)
	bad[1] = 'R'
	r, found, err := trevni.Format.Recover(t.Context(),
		format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": bad}), Name: "f.trv"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if len(found) != 1 || found[0].Code != "trevni.recovered" || found[0].Severity != region.Error ||
		found[0].At.Off != 0 || found[0].At.Len != 4 || found[0].Lost != -1 {
		t.Errorf("%+v", found)
	}
}

// unsealed returns a file of our writer without the checksums of header and descriptors.
func unsealed(data []byte) []byte {
	out := bytes.ReplaceAll(data, []byte("stoa.header"), []byte("user.header"))
	return bytes.ReplaceAll(out, []byte("stoa.descriptors"), []byte("user.descriptors"))
}

// verified returns the findings of verify about a file.
func verified(t *testing.T, data []byte, opts map[string]string) []region.Finding {
	t.Helper()
	m := store.NewMemory(map[string][]byte{"f.trv": data})
	return slices.Collect(trevni.Format.Verify(t.Context(), format.Target{Tree: m, Name: "f.trv"},
		format.OpenOptions{Opts: opts}))
}
