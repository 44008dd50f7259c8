package cfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/store"
)

// decimalsOf returns values as an array of decimals; with nulls there is a null after each, and with list each is in a
// list of its own.
func decimalsOf(digits int, nulls, list bool, values ...*big.Int) arrow.Array {
	typ := &arrow.Decimal128Type{Precision: int32(digits), Scale: int32(min(2, digits-1))}
	lists := array.NewListBuilder(memory.DefaultAllocator, typ)
	b := lists.ValueBuilder().(*array.Decimal128Builder)
	for _, v := range values {
		lists.Append(true)
		if b.Append(decimal128.FromBigInt(v)); nulls {
			b.AppendNull()
		}
	}
	if list {
		return lists.NewArray()
	}
	return b.NewArray()
}

// TestDecimalPrecision: for every width and encoding the largest and the smallest value of a precision can be read. One
// beyond these is damage of its block for reading and for verify, because the type that the file declares does not
// allow it.
func TestDecimalPrecision(t *testing.T) {
	one := big.NewInt(1)
	for _, digits := range []int{1, 8, 10, 11, 17, 19, 20, 37} { // one digit more has the same stored width
		past := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
		largest := new(big.Int).Sub(past, one)
		for _, encoding := range []string{"plain", "bitshuffle", "rle"} {
			for _, nulls := range []bool{false, true} {
				for _, list := range []bool{false, true} {
					for _, over := range []*big.Int{nil, past, new(big.Int).Neg(past)} {
						values := []*big.Int{largest, new(big.Int).Neg(largest), big.NewInt(0), one}
						if over != nil {
							values = append(values, over)
						}
						name := fmt.Sprintf("%d digits, %s, nulls %t, list %t, over %v", digits, encoding,
							nulls, list, over)
						arr := decimalsOf(digits+1, nulls, list, values...)
						sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arr.DataType(), Nullable: true}}, nil)
						tree, err := written(sc, []arrow.Array{arr}, map[string]string{"encoding": encoding,
							"checksums": "false"})
						if err != nil && strings.Contains(err.Error(), "encoding") {
							continue // not of this width
						}
						if err != nil {
							t.Errorf("%s: %v", name, err)
							continue
						}
						lowerPrecision(t, name, tree, digits)
						checkDamaged(t, name, tree, over != nil)
					}
				}
			}
		}
	}
}

// lowerPrecision sets the precision of the file's decimals, digits + 1, to digits.
func lowerPrecision(t *testing.T, name string, tree *store.Memory, digits int) {
	t.Helper()
	old, lower := fmt.Sprintf(`"precision":%d,`, digits+1), fmt.Sprintf(`"precision":%d,`, digits)
	data := tree.Bytes("t")
	if bytes.Count(data, []byte(old)) != 1 || len(old) != len(lower) {
		t.Fatalf("%s: the footer does not have the precision once", name)
	}
	copy(data[bytes.Index(data, []byte(old)):], lower)
}

// checkDamaged scans and verifies the file: all report damage of the block, or nothing if damaged is false.
func checkDamaged(t *testing.T, name string, tree *store.Memory, damaged bool) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: tree})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer tab.Close()
	for _, err = range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			break
		}
	}
	if errors.Is(err, fault.Corrupt) != damaged || !damaged && err != nil {
		t.Errorf("%s: reading: %v", name, err)
	}
	for _, depth := range []format.Depth{format.Sums, format.Deep} {
		found := 0
		for x := range cfile.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"},
			format.OpenOptions{Depth: depth}) {
			if found++; x.Code != "cfile.block.damaged" {
				t.Errorf("%s: %v", name, x)
			}
		}
		if damaged != (found > 0) {
			t.Errorf("%s: verify with depth %v has %d findings", name, depth, found)
		}
	}
}
