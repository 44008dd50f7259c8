package store_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"stoa/store"
	"stoa/store/faulty"
)

// TestChecked: a checked scratch file returns what was written, whichever part is read and when, and never a byte that
// was changed meanwhile.
func TestChecked(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	below, err := store.Local{}.Sink(t.TempDir()+"/x", nil).Scratch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	flipped := &flip{Scratch: below, at: -1}
	c := store.Checked(flipped)
	var all []byte
	for range 60 {
		b := make([]byte, r.IntN(40_000))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if n, err := c.Write(b); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
		all = append(all, b...)
		for range 5 {
			off, n := r.IntN(len(all)+1), r.IntN(200_000)
			got := make([]byte, n)
			k, err := c.ReadAt(got, int64(off))
			if want := all[off:min(len(all), off+n)]; !bytes.Equal(got[:k], want) ||
				(err == io.EOF) != (len(want) < n) || err != nil && err != io.EOF {
				t.Fatalf("%d bytes at %d of %d: %d, %v", n, off, len(all), k, err)
			}
		}
	}
	for range 200 {
		flipped.at = r.Int64N(int64(len(all)))
		got := make([]byte, len(all))
		if n, err := c.ReadAt(got, 0); err == nil || !bytes.Equal(got[:n], all[:n]) {
			t.Fatalf("byte %d of %d: %d bytes, %v", flipped.at, len(all), n, err)
		}
	}
}

// flip is a scratch file that reads one byte wrong.
type flip struct {
	store.Scratch
	at int64
}

func (f *flip) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.Scratch.ReadAt(p, off)
	if f.at >= off && f.at < off+int64(n) {
		p[f.at-off] ^= 4
	}
	return n, err
}

// TestStrict: a short write is an error, of an output and of a scratch file.
func TestStrict(t *testing.T) {
	for at := range int64(4) {
		s := store.Strict(&faulty.Sink{Sink: store.Local{}.Sink(t.TempDir()+"/x", nil), Left: 1 << 20, Ops: true,
			Mode: faulty.Short, At: at})
		o, err := s.Create(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		_, err1 := o.Write([]byte("abcd")) // operation 1
		f, err := s.Scratch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err3 := f.Write([]byte("abcd")) // operation 3
		if errors.Is(err1, io.ErrShortWrite) != (at == 1) || errors.Is(err3, io.ErrShortWrite) != (at == 3) {
			t.Errorf("operation %d is short: %v, %v", at, err1, err3)
		}
		f.Close()
		o.Close()
		s.Abort(t.Context())
	}
}
