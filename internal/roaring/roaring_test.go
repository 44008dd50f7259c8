package roaring

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 5, 5000, 20000} {
		set := map[int64]bool{}
		for range n {
			set[r.Int64N(1<<18)|r.Int64N(2)<<33] = true
		}
		var want []int64
		for x := range set {
			want = append(want, x)
		}
		slices.Sort(want)
		b := Encode(want)
		got, err := Decode(b, int64(len(want)))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d positions came back as %d: %v", len(want), len(got), err)
		}
		for range 200 { // no panic, and no more positions than allowed
			bad := slices.Clone(b)
			if len(bad) > 0 {
				bad[r.IntN(len(bad))] ^= byte(1 << r.IntN(8))
			}
			if got, _ := Decode(bad[:r.IntN(len(bad)+1)], 1<<20); len(got) > 1<<20 {
				t.Fatal("too many positions")
			}
		}
	}
}

// TestRuns decodes a hand-made bitmap: a container of runs.
func TestRuns(t *testing.T) {
	b := []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3b, 0x30, 0, 0, 1, 0, 0, 4, 0, 2, 0, 2, 0, 2, 0, 9, 0, 1, 0}
	got, err := Decode(b, 10)
	if want := []int64{2, 3, 4, 9, 10}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
