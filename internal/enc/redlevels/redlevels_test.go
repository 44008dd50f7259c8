package redlevels

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLevels: packed levels are unpacked unchanged.
func TestLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		max := uint8(1 + r.IntN(9))
		levels := make([]byte, r.IntN(300))
		v := byte(0)
		for i := range levels {
			if r.IntN(4) == 0 {
				v = byte(r.IntN(int(max) + 1))
			}
			levels[i] = v
		}
		got := make([]byte, len(levels))
		b := PackDef(nil, levels, max)
		d, used, err := NewDefReader(b, max)
		if err == nil {
			_, err = d.Read(got)
		}
		if err != nil || used != len(b) || !slices.Equal(got, levels) {
			t.Fatalf("definition levels %v: %v %v", levels, got, err)
		}
		checkSlowLevels(t, b, max, got)
		b = PackRep(nil, levels, max)
		if used, err := UnpackRep(got, b, 0, len(levels), max); err != nil || used != len(b) ||
			!slices.Equal(got, levels) {
			t.Fatalf("repetition levels %v: %v %v", levels, got, err)
		}
		if k := len(levels) / 3; k > 0 {
			if _, err := UnpackRep(got[:k], b, k, len(levels), max); err != nil ||
				!slices.Equal(got[:k], levels[k:2*k]) {
				t.Fatalf("part of repetition levels: %v", err)
			}
		}
	}
}

// checkSlowLevels compares the fast paths through definition levels with the slow one.
func checkSlowLevels(t *testing.T, b []byte, max uint8, got []byte) {
	t.Helper()
	slow, _, err := NewDefReader(b, max)
	if err != nil {
		return
	}
	fast, passed := slow, slow
	there, err := fast.Read(got)
	skipped, err2 := passed.Skip(len(got))
	present := 0
	for i := range got {
		if slow.run == 0 {
			slow.nextSlow()
		}
		if slow.fail != "" {
			break
		}
		if slow.run--; slow.val == max {
			present++
		}
		if err == nil && got[i] != slow.val {
			t.Fatalf("level %d of % x: %d, want %d as nextSlow reads it", i, b, got[i], slow.val)
		}
	}
	if failed := slow.fail != ""; (err != nil) != failed || (err2 != nil) != failed || !failed &&
		(there != present || skipped != present) {
		t.Fatalf("% x: Read %v, Skip %v, nextSlow %q; %d, %d and %d levels equal the maximum", b, err,
			err2, slow.fail, there, skipped, present)
	}
}

func FuzzLevels(f *testing.F) {
	f.Add(PackDef(nil, []byte{0, 1, 1, 1, 1, 1, 1, 1, 2}, 2), uint8(2), uint16(9))
	f.Fuzz(func(t *testing.T, b []byte, max uint8, n uint16) {
		max = max%64 + 1
		got := make([]byte, n)
		if d, _, err := NewDefReader(b, max); err == nil {
			if _, err := d.Read(got); err == nil {
				for _, v := range got {
					if v > max {
						t.Fatalf("level %d is above the maximum, %d", v, max)
					}
				}
			}
		}
		checkSlowLevels(t, b, max, got)
		UnpackRep(got, b, 0, int(n), max)
	})
}
