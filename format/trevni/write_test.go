package trevni_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	judge "stoa/interop/trevni"
	"stoa/store"
)

// TestFileSize: with a file size, each file can be read on its own, and all files together are the table.
func TestFileSize(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}}, nil)
	b := judge.RandomBatch(rand.New(rand.NewPCG(1, 1)), sc, 30000)
	for _, f := range []format.Format{trevni.Format, trevni.AvroFormat} {
		m := write(t, f, sc, map[string]string{"file-size": "50000", "block-size": "5000"}, b)
		var got string
		names := m.Names()
		slices.Sort(names)
		for _, name := range names {
			if !strings.HasPrefix(name, "t/part-0000") {
				t.Fatal(name)
			}
			src := openScan(t, m, name, format.OpenOptions{})
			for r, err := range scan.Run(t.Context(), src, scan.Spec{}, nil) {
				if err != nil {
					t.Fatal(err)
				}
				got += strings.Trim(asJSON(t, r.Column(0)), "[]\n") + ","
			}
		}
		if want := strings.Trim(asJSON(t, b.Column(0)), "[]\n") + ","; strings.ReplaceAll(got, "\n",
			"") != strings.ReplaceAll(want, "\n", "") || len(names) < 4 {
			t.Errorf("%s: %d files, equal %t", f.Name, len(names), got == want)
		}
	}
}

// TestRefused: what cannot be written is refused by name, before anything is created.
func TestRefused(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	for _, c := range []struct {
		f    format.Format
		typ  arrow.DataType
		opts map[string]string
		part string
	}{
		{trevni.Format, &arrow.Decimal256Type{Precision: 60}, nil, "x"},
		{trevni.Format, arrow.DenseUnionOf([]arrow.Field{{Name: "a", Type: i32}}, []arrow.UnionTypeCode{0}), nil, "x"},
		{trevni.AvroFormat, arrow.MapOf(i32, i32), nil, "keys"},
		{trevni.AvroFormat, arrow.DenseUnionOf([]arrow.Field{{Name: "a", Type: i32}, {Name: "b", Type: i32}},
			[]arrow.UnionTypeCode{0, 1}), nil, "union"},
		{trevni.AvroFormat, arrow.FixedWidthTypes.MonthInterval, nil, "x"},
		{trevni.Format, i32, map[string]string{"codec": "lzo"}, "codec"},
		{trevni.Format, i32, map[string]string{"version": "2"}, "version"},
		{trevni.AvroFormat, i32, map[string]string{"first-values": "y"}, "first-values"},
		{trevni.AvroFormat, arrow.ListOf(i32), map[string]string{"first-values": "x"}, "first-values"},
	} {
		m := store.NewMemory(nil)
		sc := arrow.NewSchema([]arrow.Field{{Name: "x", Type: c.typ}}, nil)
		_, err := c.f.Create(context.Background(), m.Sink("t"), sc, format.WriteOptions{Opts: c.opts})
		if err == nil || !strings.Contains(err.Error(), c.part) || !errors.Is(err, fault.Unsupported) &&
			!errors.Is(err, fault.Invalid) || len(m.Names()) != 0 {
			t.Errorf("%s %v: %v", c.f.Name, c.typ, err)
		}
	}
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: i32, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	// a nullable column beside one that is not
	for _, f := range []format.Format{trevni.Format, trevni.AvroFormat} {
		_, err := f.Create(context.Background(), store.NewMemory(nil).Sink("t"), sc,
			format.WriteOptions{Opts: map[string]string{"first-values": "s,k"}})
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `"k"`) {
			t.Errorf("%s: first values of a column that may be null: %v", f.Name, err)
		}
	}
}
