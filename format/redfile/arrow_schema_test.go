package redfile_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/redfile"
	"stoa/region"
)

// TestFlippedArrowSchema flips every bit of the Arrow schema in a file without any other checksum, of its key, and of
// the bytes beside it: either the schema is unchanged, or reading and verify report damage. Recovery uses the schema
// from the first sync block, if there is one, and inferred types otherwise.
func TestFlippedArrowSchema(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "cost", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}, Nullable: true},
		{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_ms},
		{Name: "small", Type: arrow.PrimitiveTypes.Uint8},
	}, nil)
	r := rand.New(rand.NewPCG(1, 1))
	for _, opts := range []map[string]string{{"sync": "0"}, {"sync": "1"}, {"generation": "A", "sync": "0"}} {
		opts["crc"], opts["compression"] = "false", "none"
		cols := make([]arrow.Array, sc.NumFields())
		for i, f := range sc.Fields() {
			cols[i] = formattest.Random(r, f.Type, 5, 0)
		}
		batch := array.NewRecordBatch(sc, cols, 5)
		whole := writeTable(t, opts, batch)
		want, errs := content(target(whole))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		from := bytes.LastIndex(whole, []byte("ARROW:schema"))
		to := bytes.LastIndex(whole, []byte("stoa.schema.crc"))
		damaged, copied := 0, 0
		for i := from; i < to+len("stoa.schema.crc")+9; i++ {
			b := slices.Clone(whole)
			b[i] ^= 1 << (i % 8)
			got, errs := content(target(b))
			if len(errs) == 0 {
				if got != want {
					t.Fatalf("%v: byte %d: read as\n%s", opts, i, firstDifference(got, want))
				}
				continue
			}
			damaged++
			if !errors.Is(errs[0], fault.Corrupt) && !errors.Is(errs[0], fault.Limit) {
				t.Errorf("%v: byte %d: %v", opts, i, errs[0])
			}
			if f := findings(target(b)); len(f) == 0 || f[0].Severity != region.Error {
				t.Errorf("%v: byte %d: cannot be opened, and verify reports %+v", opts, i, f)
			}
			back, found, err := redfile.Format.Recover(ctx, target(b), format.OpenOptions{})
			if err != nil {
				t.Errorf("%v: byte %d: %v", opts, i, err)
				continue
			}
			if !slices.ContainsFunc(found, func(f region.Finding) bool { return f.Severity == region.Error }) {
				t.Errorf("%v: byte %d: recovered, and nothing is reported: %+v", opts, i, found)
			}
			if got, errs := readerContent(back, target(b)); got == want && len(errs) == 0 {
				copied++
			}
			back.Close()
		}
		if damaged < (to-from)*9/10 || opts["sync"] == "1" && copied < damaged*9/10 {
			t.Errorf("%v: of %d flips %d are damage, %d were recovered as the file was", opts, to-from, damaged, copied)
		}
	}
}
