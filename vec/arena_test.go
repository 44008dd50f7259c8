package vec

import "testing"

// TestArenaBlocks: who takes little has little; who takes much over and over keeps one block of the usual size, and
// nothing outsized.
func TestArenaBlocks(t *testing.T) {
	held := func(a *Arena) (n int) {
		for _, b := range a.blocks {
			n += len(b)
		}
		return n
	}
	var a Arena
	if a.Bytes(100); held(&a) > 2*minBlock {
		t.Errorf("for 100 bytes %d are held", held(&a))
	}
	for range 3 {
		for range 40 {
			a.Bytes(100_000)
		}
		a.Bytes(5 * maxBlock)
		for range 40 {
			a.Bytes(100_000)
		}
		if n, most := len(a.blocks), 4_000_000*2/maxBlock+8; n > most {
			t.Errorf("%d blocks; at most %d", n, most)
		}
		a.Reset()
		if held(&a) != maxBlock {
			t.Errorf("%d bytes are kept; %d is a block", held(&a), maxBlock)
		}
	}
	a.Bytes(1000)
	if a.Reset(); held(&a) != maxBlock {
		t.Errorf("%d bytes are kept", held(&a))
	}
}
