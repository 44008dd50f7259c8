package cfile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/kudugen"
	"stoa/region"
	"stoa/store"
)

// TestGolden runs the golden subset, which needs no corpus.
func TestGolden(t *testing.T) {
	runCorpus(t, golden, 634)
	t.Run("synthetic", func(t *testing.T) { runSynthetic(t, filepath.Join(golden, "synthetic")) })
}

// TestGoldenIsComplete: the subset holds every type × encoding × codec × nullability, and one file for each special
// case.
func TestGoldenIsComplete(t *testing.T) {
	have := map[string]int{}
	for _, b := range readManifest(t, golden) {
		sums := "nock"
		if b.Checksums {
			sums = "ck"
		}
		if b.Kind == "column" {
			x, err := b.expect(golden)
			if err != nil {
				t.Fatal(err)
			}
			have[fmt.Sprintf("%s%d %s %s %s", x.col.Type, x.col.Width(), b.CFile["encoding"],
				b.CFile["compression"], b.CFile["nullable"])]++
			have[fmt.Sprintf("%s%d %s %s", x.col.Type, x.col.Width(), b.CFile["encoding"], sums)]++
			if x.col.Key {
				have["key "+x.col.Type]++
			}
		} else {
			have[b.Kind+" "+sums]++
		}
		if b.DictModes["plain"] > 0 {
			have["dictionary overflow "+sums]++
		}
		have[fmt.Sprintf("posidx of %d levels", b.Btree["pos"].Levels)]++
		have[fmt.Sprintf("validx of %d levels", b.Btree["val"].Levels)]++
	}
	var want []string
	const ints, strs, plain = "PLAIN_ENCODING BIT_SHUFFLE RLE", "PLAIN_ENCODING PREFIX_ENCODING DICT_ENCODING",
		"PLAIN_ENCODING BIT_SHUFFLE"
	for typ, encs := range map[string]string{
		"bool1": "PLAIN_ENCODING RLE", "int81": ints, "int162": ints, "int324": ints, "int648": ints,
		"unixtime_micros8": ints, "date4": ints,
		"float4": plain, "double8": plain, "decimal4": ints, "decimal8": ints, "decimal16": plain, "string0": strs,
		"binary0": strs, "varchar0": strs,
	} {
		for e := range strings.FieldsSeq(encs) {
			for _, c := range []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"} {
				want = append(want, typ+" "+e+" "+c+" true", typ+" "+e+" "+c+" false")
			}
			want = append(want, typ+" "+e+" ck", typ+" "+e+" nock")
		}
	}
	for _, k := range []string{"int8", "int16", "int32", "int64", "unixtime_micros", "date", "decimal", "string",
		"binary", "varchar"} {
		want = append(want, "key "+k)
	}
	for _, k := range []string{"undo", "redo", "bloom", "adhoc-index", "dictionary overflow"} {
		want = append(want, k+" ck", k+" nock")
	}
	want = append(want, "posidx of 2 levels", "validx of 2 levels", "validx of 3 levels")
	for _, w := range want {
		if have[w] == 0 {
			t.Errorf("no %s", w)
		}
	}
	t.Logf("%d combinations", len(want))
}

// TestComparisonsCanFail: the comparisons of runCorpus and TestDamage notice a difference.
func TestComparisonsCanFail(t *testing.T) {
	noticed := 0
	for _, b := range readManifest(t, golden) {
		if b.Kind == "bloom" || b.Size > 8<<10 {
			continue
		}
		x, err := b.expect(golden)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(golden, b.File))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readAll(t.Context(), memory1(data), raw, nil)
		if err != nil || len(differences(got.cells, x)) > 0 {
			t.Fatal(b.File, err)
		}
		// A different value, an added or missing NULL, a missing row, two rows exchanged.
		right := x.cells
		for i := range 4 {
			x.cells = slices.Clone(right)
			k := len(right) * (2*i + 1) / 8
			switch i {
			case 0:
				k = max(0, slices.IndexFunc(right, func(c kudugen.Cell) bool { return len(c) > 0 }))
				x.cells[k] = bytes.Clone(right[k])
				x.cells[k][len(right[k])-1] ^= 0x40
			case 1:
				if right[k] == nil {
					x.cells[k] = kudugen.Cell{}
				} else {
					x.cells[k] = nil
				}
			case 2:
				x.cells = x.cells[1:]
			case 3:
				j := slices.IndexFunc(right, func(c kudugen.Cell) bool { return !same(c, right[k]) })
				if j < 0 {
					continue
				}
				x.cells[k], x.cells[j] = x.cells[j], x.cells[k]
			}
			if len(differences(got.cells, x)) == 0 {
				t.Errorf("%s: change %d of row %d was not noticed", b.File, i, k)
			}
			noticed++
		}
	}
	t.Log(noticed, "changes noticed")

	// With a bit of a value flipped and the checksum corrected, the answer differs in exactly one row.
	data, err := os.ReadFile(filepath.Join(golden, "matrix/int32_plain_no.ck.cfile"))
	if err != nil {
		t.Fatal(err)
	}
	layout, err := kudugen.Walk(data)
	if err != nil {
		t.Fatal(err)
	}
	before, err := readAll(t.Context(), memory1(data), raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := layout.Blocks[1]
	bad := bytes.Clone(data)
	bad[first.Off+8+4*17] ^= 1
	if _, err := readAll(t.Context(), memory1(bad), raw, nil); err == nil {
		t.Error("a flipped bit was not noticed")
	}
	x := bad[first.Off : first.Off+first.Len]
	binary.LittleEndian.PutUint32(x[len(x)-4:], crc32.Checksum(x[:len(x)-4], castagnoli))
	after, err := readAll(t.Context(), memory1(bad), raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, changed := difference(before, after); !changed || !r.sameShape || r.from != 17 || r.to != 18 || r.n != 1 {
		t.Errorf("%v %v", r, changed)
	}

	at := func(depth int, off, n int64) region.Node {
		return region.Node{Depth: depth, Name: "x", At: fault.Span{Object: "f", Off: off, Len: n}, Inner: -1}
	}
	whole := []region.Node{at(0, 0, 10), at(1, 0, 4), at(1, 4, 6), at(2, 4, 6), at(0, 10, 2)}
	if err := covered(whole, "f", 12); err != nil {
		t.Error(err)
	}
	for i := range whole {
		for _, change := range []func(n *region.Node){
			func(n *region.Node) { n.At.Len++ }, func(n *region.Node) { n.At.Len-- },
			func(n *region.Node) { n.At.Off++ },
			func(n *region.Node) { n.Kind = region.Gap }, func(n *region.Node) { n.At.Object = "g" },
			func(n *region.Node) { n.Name = "" },
		} {
			nodes := slices.Clone(whole)
			change(&nodes[i])
			longer := nodes[i].At.Len > whole[i].At.Len && i == 0 // an inner node may be longer than its parts claim …
			if covered(nodes, "f", 12) == nil && !longer {
				t.Errorf("node %d: %+v passes", i, nodes[i])
			}
		}
	}
}

// memory1 returns a target of one object named f.
func memory1(data []byte) format.Target {
	return format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"}
}
