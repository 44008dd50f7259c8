package ipc

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/ipc/flat"
	"stoa/store"
)

// FuzzFile opens files and streams: with dictionaries (replaced, extended), compressed bodies, and old framing; and
// truncated ones, which have no footer.
func FuzzFile(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.arrow*")
	if len(names) == 0 {
		f.Fatal("no seeds")
	}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		if bytes.HasPrefix(b, []byte(fileMagic)) {
			f.Add(b[:len(b)-20])
		}
	}
	// verify reads the same rows as a scan, so it finds all damage; a scan of a row range may not reach it.
	h := formattest.Hostile{Format: Format}
	f.Fuzz(func(t *testing.T, data []byte) { h.Try(t, data) })
}

// FuzzMetadata parses the flatbuffers of messages and footers.
func FuzzMetadata(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.arrow*")
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		s, err := openSource(f.Context(), format.Target{Tree: store.Local{}, Name: n}, formattest.HostileLimits)
		if err != nil {
			f.Fatal(err)
		}
		at := int64(0)
		if bytes.HasPrefix(b, []byte(fileMagic)) {
			at = 8
			r := &reader{source: s}
			if off, n, err := r.footerAt(f.Context()); err == nil {
				f.Add(b[off : off+n])
			}
		}
		for {
			m, end, err := s.next(f.Context(), at, 0)
			if err != nil || m == nil {
				break
			}
			f.Add(m.meta)
			at = end
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := formattest.Allocated()
		h, err := flat.ParseHeader(data)
		for _, x := range h.Batch.Buffers {
			if err == nil && (x.Off < 0 || x.Len < 0 || x.Off+x.Len > h.Body) {
				t.Errorf("%+v is outside of the body of %d bytes", x, h.Body)
			}
		}
		const limit = 1 << 20
		if foot, err := flat.ParseFooter(data, limit); err == nil {
			m, err := flat.MessageOfFooter(data, 4)
			if h, headErr := flat.ParseHeader(m); err != nil || headErr != nil || h.Kind != flat.Schema {
				t.Errorf("no schema message can be made of a footer that was parsed: %v, %v", err, headErr)
			}
			for _, b := range append(foot.Batches, foot.Dictionaries...) {
				if b.Off < 0 || b.Meta < 0 || b.Body < 0 || b.End() > limit {
					t.Errorf("%+v is outside of the file", b)
				}
			}
		}
		if n := formattest.Allocated() - before; n > int64(64*len(data)+1<<20) {
			t.Errorf("%d bytes allocated for %d", n, len(data))
		}
	})
}
