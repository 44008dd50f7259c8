package vec

import "testing"

// TestArenaBlocks: a little-used arena holds little memory; after repeated heavy use and Reset it keeps one block of
// the usual size, and no larger one.
func TestArenaBlocks(t *testing.T) {
	held := func(a *Arena) (n int) {
		for _, b := range a.blocks {
			n += len(b)
		}
		return n
	}
	var a Arena
	if a.Bytes(100); held(&a) > 2*minBlock {
		t.Errorf("%d bytes are held for 100", held(&a))
	}
	for range 3 {
		for range 40 {
			a.Bytes(100_000)
		}
		a.Bytes(5 * maxBlock)
		for range 40 {
			a.Bytes(100_000)
		}
		if n, limit := len(a.blocks), 4_000_000*2/maxBlock+8; n > limit {
			t.Errorf("%d blocks, want at most %d", n, limit)
		}
		a.Reset()
		if held(&a) != maxBlock {
			t.Errorf("%d bytes are kept, want one block of %d", held(&a), maxBlock)
		}
	}
	a.Bytes(1000)
	if a.Reset(); held(&a) != maxBlock {
		t.Errorf("%d bytes are kept", held(&a))
	}
}
