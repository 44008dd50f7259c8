package cfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// decimalFile returns a file of decimals with two digits after the point, and its values.
func decimalFile(t *testing.T) (data []byte, want arrow.Array) {
	t.Helper()
	want = decimalsOf(9, true, false, big.NewInt(-346565), big.NewInt(1), big.NewInt(0), big.NewInt(99))
	sc := arrow.NewSchema([]arrow.Field{{Name: "cost", Type: want.DataType(), Nullable: true}}, nil)
	tree, err := written(sc, []arrow.Array{want}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tree.Bytes("t"), want
}

// recovered returns the name and the values of the first column recovered from a file, and the findings.
func recovered(t *testing.T, data []byte, opts map[string]string) (string, arrow.Array, []region.Finding, error) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"t": data}),
		Recover: true, Opts: opts})
	if err != nil {
		return "", nil, nil, err
	}
	defer tab.Close()
	var all []arrow.Array
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			return "", nil, tab.Findings(), err
		}
		b.Column(0).Retain()
		all = append(all, b.Column(0))
	}
	a, err := array.Concatenate(all, memory.DefaultAllocator)
	return tab.Schema().Field(0).Name, a, tab.Findings(), err
}

// TestFooterBit: if any bit of a footer or of its checksum is flipped, except in the magic and the length, by which the
// footer is found, the checksum identifies the bit: recovery returns name, type and values unchanged, and reports the
// damage.
func TestFooterBit(t *testing.T) {
	whole, want := decimalFile(t)
	from, magic := footerOf(whole)
	for i := from; i < magic; i++ {
		for bit := range 8 {
			data := bytes.Clone(whole)
			data[i] ^= 1 << bit
			name, got, found, err := recovered(t, data, nil)
			if err != nil || name != "cost" || !array.Equal(got, want) {
				t.Fatalf("bit %d of byte %d: %s %v, %v", bit, i, name, got, err)
			}
			if !slices.ContainsFunc(found, func(f region.Finding) bool { return f.Severity == region.Error }) {
				t.Fatalf("bit %d of byte %d: nothing is reported: %v", bit, i, found)
			}
		}
	}
}

// footerOf returns the offsets at which the footer of a file, including its checksum, and the footer's magic begin.
func footerOf(data []byte) (from, magic int) {
	magic = len(data) - len("kuducfl2") - 4
	return magic - int(binary.LittleEndian.Uint32(data[len(data)-4:])) - 4, magic
}

// TestUnprovenScale: if more than one bit of the footer has changed, nothing proves the scale of decimals: no decimal
// is returned with a wrong scale, unless the user states it.
func TestUnprovenScale(t *testing.T) {
	whole, want := decimalFile(t)
	from, _ := footerOf(whole)
	for _, x := range [][2]string{{`"scale":2`, `"scale":3`}, {`"scale"`, `"scalf"`}, {`"stoa.field"`, `"stoa.fjeld"`},
		{`"precision"`, `"precisiom"`}, {`"scale":2`, `"scale":2`}} {
		old, other := []byte(strings.Trim(x[0], "\"")), []byte(strings.Trim(x[1], "\""))
		if bytes.Count(whole[from:], old) != 1 {
			t.Fatalf("%s is not in the footer once", old)
		}
		data := bytes.Clone(whole)
		copy(data[from+bytes.Index(whole[from:], old):], other)
		data[from] ^= 0xff // a byte of the checksum
		if _, got, _, err := recovered(t, data, nil); !errors.Is(err, fault.Corrupt) ||
			!strings.Contains(fmt.Sprint(err), "pass scale=") {
			t.Errorf("%s instead of %s: %v, %v", other, old, got, err)
		}
		_, got, _, err := recovered(t, data, map[string]string{"scale": "2", "precision": "9"})
		if err != nil || !array.Equal(got, want) {
			t.Errorf("%s instead of %s, and the scale is stated: %v, %v", other, old, got, err)
		}
	}
}

// TestQuickFindsNoMore: for any flipped bit in a file without checksums, damage that quick verification reports is also
// reported at the other depths.
func TestQuickFindsNoMore(t *testing.T) {
	for _, opts := range []map[string]string{{"encoding": "plain"}, {"encoding": "bitshuffle"}, {"encoding": "rle"},
		{"encoding": "plain", "value-index": "true"}} {
		for _, nulls := range []bool{false, true} {
			if nulls && opts["value-index"] != "" {
				continue // a value index requires values without nulls
			}
			b := array.NewInt64Builder(memory.DefaultAllocator)
			for i := range 60 {
				if b.Append(int64(i * i)); nulls && i%3 == 0 {
					b.AppendNull()
				}
			}
			quickFindsNoMore(t, b.NewArray(), nulls, opts)
		}
	}
}

func quickFindsNoMore(t *testing.T, a arrow.Array, nulls bool, opts map[string]string) {
	t.Helper()
	o := map[string]string{"checksums": "false", "block-size": "128"}
	maps.Copy(o, opts)
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: a.DataType(), Nullable: nulls}}, nil)
	tree, err := written(sc, []arrow.Array{a}, o)
	if err != nil {
		t.Fatal(err)
	}
	whole, found := tree.Bytes("t"), 0
	for i := range whole {
		for bit := range 8 {
			data := bytes.Clone(whole)
			data[i] ^= 1 << bit
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"t": data}), Name: "t"}
			if errorsOf(t.Context(), tg, format.Quick) == 0 {
				continue
			}
			found++
			for _, depth := range []format.Depth{format.Sums, format.Deep} {
				if errorsOf(t.Context(), tg, depth) == 0 {
					t.Errorf("%v, nulls %t: bit %d of byte %d of %d: depth %s reports nothing", opts, nulls, bit, i,
						len(whole), depth)
				}
			}
		}
	}
	if found < len(whole)/2 {
		t.Errorf("%v: only %d changes were found", opts, found)
	}
}
