package meta

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stoa/format/cfile"
)

// rangesOf returns the partitions of a table with one key column, from pairs of bounds; nil is unbounded.
func rangesOf(t *testing.T, typ cfile.Type, bounds ...[2]any) (PartitionSchema, *Schema, []Partition) {
	t.Helper()
	key := func(v any) []byte {
		var stored []byte
		switch x := v.(type) {
		case nil:
			return nil
		case string:
			stored = []byte(x)
		case int64:
			for i := range typ.Width() {
				stored = append(stored, byte(x>>(8*i)))
			}
		}
		k, err := cfile.AppendKey(nil, typ, stored, true)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	var parts []Partition
	for _, b := range bounds {
		parts = append(parts, Partition{Start: key(b[0]), End: key(b[1])})
	}
	sc := &Schema{Columns: []Column{{ID: 7, Name: "k", Type: typ}}, NumKeys: 1}
	sc.Index()
	return PartitionSchema{Stored: true, Range: []int32{7}}, sc, parts
}

func TestRangeTerm(t *testing.T) {
	at := func(y, m, d, h int) int64 { return time.Date(y, time.Month(m), d, h, 0, 0, 0, time.UTC).UnixMicro() }
	day := func(y, m, d int) int64 { return at(y, m, d, 0) / 86_400_000_000 }
	type r = [2]any
	for _, c := range []struct {
		typ    cfile.Type
		bounds []r
		want   string
	}{
		{cfile.UnixtimeMicros, []r{{at(2020, 1, 1, 0), at(2021, 1, 1, 0)}, {at(2021, 1, 1, 0), nil}}, "year(k)"},
		{cfile.UnixtimeMicros, []r{{at(2020, 1, 1, 0), at(2020, 2, 1, 0)}, {at(2020, 2, 1, 0), at(2021, 1, 1, 0)}},
			"month(k)"},
		{cfile.UnixtimeMicros, []r{{nil, at(1969, 12, 31, 0)}}, "day(k)"},
		{cfile.UnixtimeMicros, []r{{at(1960, 2, 29, 23), at(1960, 3, 1, 0)}}, "hour(k)"},
		{cfile.UnixtimeMicros, []r{{at(2020, 1, 1, 0), at(2021, 1, 1, 0) + 1}}, ""},
		{cfile.UnixtimeMicros, []r{{nil, nil}}, ""},
		{cfile.Date, []r{{day(1960, 2, 1), day(1960, 3, 1)}}, "month(k)"},
		{cfile.Date, []r{{day(1960, 2, 1), day(1960, 2, 9)}}, "day(k)"},
		{cfile.Int64, []r{{int64(0), int64(100)}, {int64(100), int64(300)}}, "truncate(100, k)"},
		{cfile.Int64, []r{{int64(-300), int64(-100)}, {int64(-100), int64(500)}}, "truncate(100, k)"},
		{cfile.Int32, []r{{int64(0), int64(100)}, {int64(100), nil}}, ""},
		{cfile.Int8, []r{{int64(-3), int64(-2)}, {int64(5), int64(6)}}, "k"},
		{cfile.Int64, []r{{int64(1), int64(1_000_000)}}, ""},
		{cfile.Int64, []r{{int64(-1 << 63), int64(0)}}, ""},
		{cfile.Int32, []r{{int64(0), int64(1 << 24)}}, "truncate(1048576, k)"},
		{cfile.String, []r{{"a", "a\x00"}, {"bc", "bc\x00"}}, "k"},
		{cfile.String, []r{{"a", "b"}}, ""},
		{cfile.String, []r{{nil, "b"}}, ""},
		{cfile.Decimal32, []r{{int64(0), int64(100)}}, ""},
	} {
		s, sc, parts := rangesOf(t, c.typ, c.bounds...)
		if got := s.RangeTerm(sc, parts); got != c.want {
			t.Errorf("%v %v: got %q, want %q", c.typ, c.bounds, got, c.want)
		}
	}
}

// TestRangeTermDivides: no value of the term has values of two ranges, whatever the ranges are.
func TestRangeTermDivides(t *testing.T) {
	const rounds = 3000
	terms := map[string]int{}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 25))
		typ := []cfile.Type{cfile.Int16, cfile.Int32, cfile.Int64, cfile.Date, cfile.UnixtimeMicros}[r.IntN(5)]
		unit := []int64{1, 7, 30, 60, 100}[r.IntN(5)]
		if typ == cfile.UnixtimeMicros {
			unit = []int64{3_600_000_000, 86_400_000_000, 30 * 86_400_000_000, 1}[r.IntN(4)]
		}
		var cuts []int64
		for range 2 + r.IntN(5) {
			cuts = append(cuts, (r.Int64N(60)-30)*unit)
			if typ == cfile.UnixtimeMicros && unit > 86_400_000_000 { // the beginnings of months
				at := time.Date(1965+r.IntN(20), time.Month(1+seed%2*r.Uint64N(12)), 1, 0, 0, 0, 0, time.UTC)
				cuts[len(cuts)-1] = at.UnixMicro()
			}
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		var bounds [][2]any
		for i := 1; i < len(cuts); i++ {
			bounds = append(bounds, [2]any{cuts[i-1], cuts[i]})
		}
		s, sc, parts := rangesOf(t, typ, bounds...)
		term := s.RangeTerm(sc, parts)
		if term == "" {
			continue
		}
		var n int64
		kind := "k"
		if _, err := fmt.Sscanf(term, "truncate(%d, k)", &n); err == nil {
			kind = "truncate"
		} else if len(term) > 1 {
			kind = term[:len(term)-3]
		}
		terms[kind]++
		in := map[string]int{}
		for range 300 {
			v := cuts[0] + r.Int64N(cuts[len(cuts)-1]-cuts[0])
			of, _ := slices.BinarySearch(cuts, v+1)
			moment := time.UnixMicro(v).UTC()
			if typ == cfile.Date {
				moment = time.Unix(v*86400, 0).UTC()
			}
			value := map[string]string{"k": fmt.Sprint(v), "year": moment.Format("2006"),
				"month": moment.Format("2006-01"), "day": moment.Format("2006-01-02"),
				"hour": moment.Format("2006-01-02T15")}[kind]
			if kind == "truncate" {
				value = fmt.Sprint(v - (v%n+n)%n)
			}
			if was, ok := in[value]; ok && was != of {
				t.Fatalf("seed %d: %s: the value %s has rows of two ranges of %v", seed, term, value, cuts)
			}
			in[value] = of
		}
	}
	for _, kind := range []string{"k", "truncate", "year", "month", "day", "hour"} {
		if terms[kind] == 0 {
			t.Errorf("no table was divided by %s: %v", kind, terms)
		}
	}
}
