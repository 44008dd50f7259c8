package kudu

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/store"
)

// tableOf is a schema of key columns k0, k1 … of the given types.
func tableOf(types ...cfile.Type) *meta.Schema {
	s := &meta.Schema{}
	for i, t := range types {
		s.Columns = append(s.Columns, meta.Column{ID: int32(10 + i), Name: "k" + string(rune('0'+i)), Type: t,
			Key: true})
	}
	s.Index()
	return s
}

func key(t testing.TB, s *meta.Schema, values ...any) []byte {
	t.Helper()
	var out []byte
	for i, v := range values {
		var raw []byte
		switch v := v.(type) {
		case string:
			raw = []byte(v)
		case int:
			raw = binary.LittleEndian.AppendUint64(nil, uint64(int64(v)))[:s.Columns[i].Type.Width()]
		}
		var err error
		if out, err = cfile.AppendKey(out, s.Columns[i].Type, raw, i == len(s.Columns)-1); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestRangeText(t *testing.T) {
	s := tableOf(cfile.String, cfile.Int32, cfile.Binary)
	p := &meta.PartitionSchema{Range: []int32{10, 11, 12}, Stored: true}
	for _, x := range []struct {
		lower, upper []byte
		want         string
	}{
		{nil, nil, "UNBOUNDED"},
		{key(t, s, "a\x00b", -5, "\xff\x00"), nil, `("a\000b", -5, "\xff\x00") <= VALUES`},
		{nil, key(t, s, "é"), `VALUES < ("é", -2147483648, "")`},
		{key(t, s, "a", 1), key(t, s, "a", 2), `("a", 1, "") <= VALUES < ("a", 2, "")`},
		{[]byte("abc"), nil, "<range-key-decode-error: "},
		{append(key(t, s, "a"), 1, 2), nil, "<range-key-decode-error: "},
	} {
		if got := p.RangeText(s, x.lower, x.upper); got != x.want &&
			!(strings.HasPrefix(x.want, "<") && strings.HasPrefix(got, x.want)) {
			t.Errorf("got %s, want %s", got, x.want)
		}
	}
	d := tableOf(cfile.Date)
	p = &meta.PartitionSchema{Range: []int32{10}, Stored: true}
	if got := p.RangeText(d, key(t, d, -1), key(t, d, 0)); got != "1969-12-31 <= VALUES < 1970-01-01" {
		t.Error(got)
	}
}

func TestMissing(t *testing.T) {
	s := tableOf(cfile.Int32, cfile.Int32)
	hash := []meta.HashDimension{{Columns: []int32{10}, Buckets: 2}, {Columns: []int32{11}, Buckets: 3}}
	p := &meta.PartitionSchema{Hash: hash, Range: []int32{11}, Stored: true}
	r := tableOf(cfile.Int32)
	k := func(v int) string { return string(key(t, r, v)) }
	texts := func(gs []meta.Gap) (out []string) {
		for _, g := range gs {
			x := g.Text
			if g.Sure {
				x += " sure"
			}
			out = append(out, x)
		}
		return out
	}
	var given []meta.Partition
	for a := range int32(2) {
		for b := range int32(3) {
			if a != 1 || b != 1 {
				given = append(given, p.BucketOf([]int32{a, b}, k(0), k(10)))
			}
			given = append(given, p.BucketOf([]int32{a, b}, k(20), ""))
		}
	}
	gaps, more := p.Missing(s, given)
	want := []string{
		"RANGE (k1) PARTITION VALUES < 0",
		"HASH (k0) PARTITION 1, HASH (k1) PARTITION 1, RANGE (k1) PARTITION 0 <= VALUES < 10 sure",
		"RANGE (k1) PARTITION 10 <= VALUES < 20",
	}
	if got := texts(gaps); !slices.Equal(got, want) || more != 0 {
		t.Errorf("got %q, %d more", got, more)
	}
	// without ranges, all buckets must be there
	p = &meta.PartitionSchema{Hash: hash[:1], Stored: true}
	if gaps, _ := p.Missing(s, []meta.Partition{p.BucketOf([]int32{1}, "", "")}); !slices.Equal(texts(gaps),
		[]string{"HASH (k0) PARTITION 0 sure"}) {
		t.Errorf("%q", texts(gaps))
	}
	if gaps, _ := p.Missing(s, nil); len(gaps) != 2 {
		t.Errorf("%q", texts(gaps))
	}
	// a range with its own hash dimensions, without tablets
	p = &meta.PartitionSchema{Hash: hash[:1], Range: []int32{11},
		Custom: []meta.RangeHash{{Lower: []byte(k(5)), Upper: []byte(k(6)), Hash: hash[1:]}}, Stored: true}
	gaps, _ = p.Missing(s, []meta.Partition{p.BucketOf([]int32{0}, "", k(5)), p.BucketOf([]int32{1}, "", k(5)),
		p.BucketOf([]int32{0}, k(6), ""), p.BucketOf([]int32{1}, k(6), "")})
	if got := texts(gaps); len(got) != 3 || got[2] != "HASH (k1) PARTITION 2, RANGE (k1) PARTITION 5 <= VALUES < 6" {
		t.Errorf("%q", got)
	}
	// more buckets than can be listed, or counted
	p = &meta.PartitionSchema{Hash: []meta.HashDimension{{Columns: []int32{10}, Buckets: 1 << 30},
		{Columns: []int32{11}, Buckets: 1 << 30}}, Stored: true}
	if gaps, more := p.Missing(s, nil); len(gaps) != meta.MaxGaps || more < 1<<39 {
		t.Errorf("%d gaps, %d more", len(gaps), more)
	}
	// a table without partitions
	p = &meta.PartitionSchema{Stored: true}
	if gaps, _ := p.Missing(s, []meta.Partition{{}}); len(gaps) != 0 {
		t.Errorf("%q", texts(gaps))
	}
}

// The rows of the real hash-partitioned tables lie in the buckets that their keys hash to.
func TestCorpusBuckets(t *testing.T) {
	ctx := context.Background()
	type source struct {
		tree   store.Tree
		dir    string
		column string
		want   int
	}
	sources := []source{{store.Local{}, "testdata/log", "key", 138}}
	if dir := corpusEnv(); dir != "" {
		sources = append(sources,
			source{store.Local{}, filepath.Join(dir, "fs_log"), "id", 400},
			source{store.Local{}, filepath.Join(dir, "fs_file"), "id", 400},
			source{store.NewMemory(unpack(t, filepath.Join(dir, "special", "md.tar.zst"))), "", "key", 2000})
	}
	for _, x := range sources {
		f := openOne(t, x.tree, x.dir)
		rows := 0
		for _, tb := range mustTablets(t, f) {
			if tb.Table != "part" && !strings.Contains(tb.Table, "loadgen") {
				continue
			}
			d := tb.Partitioning.Hash[0]
			for i := range tb.RowSets {
				b, ok := tb.RowSets[i].Block(d.Columns[0])
				if !ok || tb.Schema.NameOf(d.Columns[0]) != x.column {
					t.Fatal("no hash column")
				}
				p, err := f.PlaceOf(ctx, tb, b)
				if err != nil {
					t.Fatal(err)
				}
				src, err := f.OpenBlock(ctx, p)
				if err != nil {
					t.Fatal(err)
				}
				r, err := cfile.OpenReader(ctx, src, p.At.Object, format.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				it, err := r.SeekToOrdinal(ctx, 0)
				if err != nil {
					t.Fatal(err)
				}
				arr, err := it.Next(ctx, int(r.Len()))
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range arr.(*array.Int64).Int64Values() {
					k, err := cfile.AppendKey(nil, cfile.Int64, binary.LittleEndian.AppendUint64(nil, uint64(v)), true)
					if err != nil {
						t.Fatal(err)
					}
					if got := d.Bucket(k); got != tb.Partition.Buckets[0] {
						t.Fatalf("%s: %d hashes to bucket %d and lies in %d", tb.Table, v, got, tb.Partition.Buckets[0])
					}
					rows++
				}
				arr.Release()
				it.Close()
				src.Close()
			}
		}
		if rows != x.want {
			t.Errorf("%s: %d rows", x.dir, rows)
		}
	}
}
