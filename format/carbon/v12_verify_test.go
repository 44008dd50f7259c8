package carbon_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/carbon"
	"stoa/store"
)

// TestV1V2Coverage: describe claims each byte of the golden tables' files once.
func TestV1V2Coverage(t *testing.T) {
	for _, g := range goldenTables(t).Tables {
		if n := coverage(t, filepath.Join(goldenV12, g.Table)); n < 11 {
			t.Errorf("%s: got %d files described", g.Table, n)
		}
	}
}

// TestV1V2Verify: verify has no findings in a healthy table, and reports damage of dictionaries.
func TestV1V2Verify(t *testing.T) {
	g := goldenTables(t).Tables[0]
	files := goldenFiles(t, g.Table)
	for _, f := range findings(t, store.NewMemory(files), "t") {
		t.Errorf("a healthy table: got %+v, want no findings", f)
	}
	dict := ending(t, files, "0001.dict")
	meta, sort := ending(t, files, "0001.dictmeta"), ending(t, files, "0001_1104.sortindex")
	for name, c := range map[string]struct {
		change func(files map[string][]byte)
		want   string
	}{
		"no dictionary": {func(f map[string][]byte) { delete(f, dict) }, "carbon.dict.missing"},
		"no metadata":   {func(f map[string][]byte) { delete(f, meta) }, "carbon.dictmeta.missing"},
		"no sort index": {func(f map[string][]byte) { delete(f, sort) }, "carbon.sortindex.missing"},
		"a torn load": {func(f map[string][]byte) { f[dict] = append(f[dict], 0x19, 0x18, 3, 'x') },
			"carbon.dict.unfinished"},
		"a cut":               {func(f map[string][]byte) { f[dict] = f[dict][:1000] }, "carbon.dict.cut"},
		"another count":       {func(f map[string][]byte) { f[dict][2]++; f[dict][1103] = 1 }, "carbon.dict.damaged"},
		"a value gone":        {func(f map[string][]byte) { f[meta][3] -= 2 }, "carbon.dict.counts"},
		"a value twice":       {func(f map[string][]byte) { copy(f[dict][14:], "12") }, "carbon.dict.twice"},
		"metadata cut":        {func(f map[string][]byte) { f[meta] = f[meta][:5] }, "carbon.dictmeta.damaged"},
		"sort index cut":      {func(f map[string][]byte) { f[sort] = f[sort][:500] }, "carbon.sortindex.damaged"},
		"two places swapped":  {swapTwo(sort), "carbon.sortindex.order"},
		"one code in a list":  {func(f map[string][]byte) { f[sort][100] ^= 2 }, "carbon.sortindex.damaged"},
		"the text of no null": {func(f map[string][]byte) { f[dict][5]++ }, "carbon.dict.null"},
	} {
		bad := without(files)
		for _, n := range []string{dict, meta, sort} {
			bad[n] = slices.Clone(files[n])
		}
		c.change(bad)
		var codes []string
		for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: store.NewMemory(bad), Name: "t"},
			format.OpenOptions{}) {
			codes = append(codes, f.Code)
			if f.Message == "" || f.Column != "code" && strings.HasPrefix(f.Code, "carbon.dict") && f.At.Object == "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Contains(codes, c.want) {
			t.Errorf("%s: got %v, want %s", name, codes, c.want)
		}
	}
}

// swapTwo swaps two neighbours in both lists of a sort index, so that these remain each other's inverse.
func swapTwo(sort string) func(map[string][]byte) {
	return func(files map[string][]byte) {
		// 302 codes: two lists of zigzag numbers, of one byte below 64, else of two
		b := files[sort]
		var codes, ranks []int
		at := 0
		list := func() (out []int) {
			at += 2 // the field, and the list's type with its long size
			size, n := varint(b[at:])
			at += n
			for range size {
				v, n := varint(b[at:])
				at += n
				out = append(out, v>>1)
			}
			return out
		}
		codes, ranks = list(), list()
		codes[100], codes[200] = codes[200], codes[100]
		ranks[codes[100]-1], ranks[codes[200]-1] = 101, 201
		var out []byte
		for _, l := range [][]int{codes, ranks} {
			out = append(out, 0x19, 0xf5)
			out = put(out, len(l))
			for _, v := range l {
				out = put(out, v<<1)
			}
		}
		files[sort] = append(out, 0)
	}
}

func varint(b []byte) (v, n int) {
	for s := 0; ; s += 7 {
		v |= int(b[n]&0x7f) << s
		n++
		if b[n-1] < 0x80 {
			return v, n
		}
	}
}

func put(b []byte, v int) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
