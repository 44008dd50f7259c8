package bloom

import "testing"

// A filter of any bits and any number of probes: added keys are found, and nothing panics.
func FuzzFilter(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(4), []byte("key"))
	f.Add(make([]byte, 4096), uint8(13), []byte{})
	f.Fuzz(func(t *testing.T, bits []byte, hashes uint8, key []byte) {
		g := &Filter{Bits: append([]byte(nil), bits...), Hashes: int(hashes)}
		h := Hash(key)
		before := g.Has(h)
		g.Add(h)
		if !g.Has(h) {
			t.Fatal("lost")
		}
		for i, b := range bits {
			if before && g.Bits[i] != b {
				t.Fatal("Add changed a filter that had the key")
			}
		}
	})
}
