package laws_test

import (
	"context"
	"errors"
	"fmt"
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

// deepType returns a type nested depth levels deep: structs, lists, maps, or each of them in turn.
func deepType(kind string, depth int) arrow.DataType {
	if depth == 0 {
		return arrow.PrimitiveTypes.Int64
	}
	below := deepType(kind, depth-1)
	if kind == "mixed" {
		kind = []string{"struct", "list", "map"}[depth%3]
	}
	switch kind {
	case "struct":
		return arrow.StructOf(arrow.Field{Name: "s", Type: below, Nullable: true})
	case "list":
		return arrow.ListOf(below)
	}
	return arrow.MapOf(arrow.BinaryTypes.String, below)
}

// deepValues returns three values of a deepType, of which the second is null if top is true. It builds the arrays
// directly, because the time of the library's builders doubles with each level of maps.
func deepValues(t arrow.DataType, top bool) arrow.ArrayData {
	const n = 3
	valid, nulls := memory.NewBufferBytes([]byte{7}), 0
	if top {
		valid, nulls = memory.NewBufferBytes([]byte{5}), 1
	}
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 1, 2, 3}))
	switch t := t.(type) {
	case *arrow.StructType:
		below := deepValues(t.Field(0).Type, false)
		return array.NewData(t, n, []*memory.Buffer{valid}, []arrow.ArrayData{below}, nulls, 0)
	case *arrow.MapType:
		keys := array.NewData(arrow.BinaryTypes.String, n,
			[]*memory.Buffer{nil, offsets, memory.NewBufferBytes([]byte("kkk"))}, nil, 0, 0)
		pairs := array.NewData(t.Elem(), n, []*memory.Buffer{nil},
			[]arrow.ArrayData{keys, deepValues(t.ItemType(), false)}, 0, 0)
		return array.NewData(t, n, []*memory.Buffer{valid, offsets}, []arrow.ArrayData{pairs}, nulls, 0)
	case *arrow.ListType:
		below := deepValues(t.Elem(), false)
		return array.NewData(t, n, []*memory.Buffer{valid, offsets}, []arrow.ArrayData{below}, nulls, 0)
	}
	values := memory.NewBufferBytes(arrow.Int64Traits.CastToBytes([]int64{7, 8, 9}))
	return array.NewData(t, n, []*memory.Buffer{valid, values}, nil, nulls, 0)
}

// TestDepths: a writer either refuses a type by name before it writes, or its output is read back and verified within
// the default limits, at any depth of nesting. Under lower limits reading is an error of class Limit, never damage.
func TestDepths(t *testing.T) {
	more := map[string][]map[string]string{
		"redfile": {{"generation": "A"}, {"arrow-schema": "false"}},
		"trevni":  {{"arrow-schema": "false"}}, "trevni-avro": {{"arrow-schema": "false"}},
		"arrow": {{"stream": "true"}},
	}
	depths := []int{1, 2, 31, 32, 33, 47, 48, 49, 50, 63, 64, 65, 100, 127, 128, 300}
	if testing.Short() {
		depths = []int{2, 33, 48, 64, 65, 300}
	}
	for _, f := range stoa.Formats {
		if f.Create == nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			written := 0
			for _, opts := range append([]map[string]string{nil}, more[f.Name]...) {
				for _, kind := range []string{"struct", "list", "map", "mixed"} {
					for _, depth := range depths {
						if deepTable(t, &f, opts, kind, depth) {
							written++
						}
					}
				}
			}
			if written == 0 && f.Name != "csv" && f.Name != "tsv" && f.Name != "kudu-backup" {
				t.Errorf("nothing was written")
			}
			t.Logf("%d tables written", written)
		})
	}
}

// deepTable writes a table nested depth levels deep, and checks reading it.
func deepTable(t *testing.T, f *format.Format, opts map[string]string, kind string, depth int) (written bool) {
	t.Helper()
	what := fmt.Sprintf("%v %s %d", opts, kind, depth)
	ctx := context.Background()
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "c", Type: deepType(kind, depth), Nullable: true}}, nil)
	mem := store.NewMemory(nil)
	name := "t" + strings.Join(f.Extensions[:min(1, len(f.Extensions))], "")
	w, err := stoa.Create(ctx, name, sc, stoa.CreateOptions{To: f.Name, Opts: opts, Sink: mem.Sink(name)})
	if err != nil {
		if !errors.Is(err, fault.Limit) && !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: expected a refusal of class Limit, Unsupported or Invalid, got %v", what, err)
		}
		return false
	}
	batch := array.NewRecordBatch(sc, []arrow.Array{
		array.MakeFromData(deepValues(arrow.PrimitiveTypes.Int64, false)),
		array.MakeFromData(deepValues(sc.Field(1).Type, true))}, 3)
	if err = w.Write(ctx, batch); err == nil {
		_, err = w.Close(ctx)
	}
	if err != nil {
		t.Errorf("%s: Create takes it, but writing fails: %s", what, shortened(err))
		return false
	}
	for f, err := range stoa.Verify(ctx, name, stoa.OpenOptions{From: f.Name, Tree: mem}) {
		if err != nil || f.Severity == region.Error {
			t.Errorf("%s: %v %s %.300s", what, err, f.Code, f.Message)
		}
	}
	for _, most := range []int64{int64(depth) - 1, int64(depth) / 2, 1} {
		if most < 1 {
			continue
		}
		o := stoa.OpenOptions{From: f.Name, Tree: mem, Limits: format.Limits{Depth: most}}
		if err := scanned(t, name, o); err != nil && !errors.Is(err, fault.Limit) {
			t.Errorf("%s, with a depth limit of %d: %s", what, most, shortened(err))
		}
	}
	return true
}

// shortened returns the beginning and the end of an error's text.
func shortened(err error) string {
	s := err.Error()
	return s[:min(len(s), 150)] + " … " + s[max(0, len(s)-200):]
}
