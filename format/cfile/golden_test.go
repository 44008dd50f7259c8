package cfile_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestGolden runs the golden subset, also where the whole corpus is not at hand.
func TestGolden(t *testing.T) {
	runCorpus(t, golden, 634)
	t.Run("synthetic", func(t *testing.T) { runSynthetic(t, filepath.Join(golden, "synthetic")) })
}

// TestGoldenIsComplete: the subset holds every type × encoding × codec × nullability, and one of each special thing.
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
			have[fmt.Sprintf("%s%d %s %s %s", x.col.Type, x.col.Width(), b.CFile["encoding"], b.CFile["compression"], b.CFile["nullable"])]++
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
	const ints, strs, plain = "PLAIN_ENCODING BIT_SHUFFLE RLE", "PLAIN_ENCODING PREFIX_ENCODING DICT_ENCODING", "PLAIN_ENCODING BIT_SHUFFLE"
	for typ, encs := range map[string]string{
		"bool1": "PLAIN_ENCODING RLE", "int81": ints, "int162": ints, "int324": ints, "int648": ints, "unixtime_micros8": ints, "date4": ints,
		"float4": plain, "double8": plain, "decimal4": ints, "decimal8": ints, "decimal16": plain, "string0": strs, "binary0": strs, "varchar0": strs,
	} {
		for e := range strings.FieldsSeq(encs) {
			for _, c := range []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"} {
				want = append(want, typ+" "+e+" "+c+" true", typ+" "+e+" "+c+" false")
			}
			want = append(want, typ+" "+e+" ck", typ+" "+e+" nock")
		}
	}
	for _, k := range []string{"int8", "int16", "int32", "int64", "unixtime_micros", "date", "decimal", "string", "binary", "varchar"} {
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
