package codec

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math/bits"
	"runtime"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"stoa/fault"
)

// compressed returns raw in each method of Expand, made by other libraries or other functions than those that read it.
func compressed(t testing.TB, raw []byte) map[string][]byte {
	t.Helper()
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write(raw)
	w.Close()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer // a frame without its size
	sw, err := zstd.NewWriter(&stream)
	if err != nil {
		t.Fatal(err)
	}
	sw.Write(raw)
	sw.Close()
	return map[string][]byte{"none": raw, "snappy": s2.EncodeSnappy(nil, raw), "gzip": gz.Bytes(),
		"zstd": enc.EncodeAll(raw, nil), "zstd/stream": stream.Bytes()}
}

func method(name string) string {
	if name == "zstd/stream" {
		return "zstd"
	}
	return name
}

func room(n int) []byte { return make([]byte, n) }

func TestExpand(t *testing.T) {
	for _, raw := range [][]byte{{}, {7}, bytes.Repeat([]byte("stoa"), 3), bytes.Repeat([]byte{0}, 1<<20),
		bytes.Repeat([]byte("0123456789abcdef!"), 5000)} {
		for name, b := range compressed(t, raw) {
			got, err := Expand(method(name), b, 1<<30, room)
			if err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%s of %d bytes: %d bytes, %v", name, len(raw), len(got), err)
			}
			if len(raw) < 100 {
				continue
			}
			if _, err := Expand(method(name), b, int64(len(raw))-1, room); name != "none" &&
				!errors.Is(err, fault.Limit) {
				t.Errorf("%s: %v, want a limit", name, err)
			}
			if _, err := Expand(method(name), b[:len(b)-1], 1<<30, room); name != "none" &&
				!errors.Is(err, fault.Corrupt) {
				t.Errorf("%s cut by a byte: %v, want corrupt", name, err)
			}
		}
	}
	if _, err := Expand("lzo", nil, 1, room); !errors.Is(err, fault.Unsupported) {
		t.Errorf("%v, want unsupported", err)
	}
	if _, err := Expand("snappy", []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, 1<<40, room); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a Snappy block that says 4 GiB: %v, want corrupt", err)
	}
}

func FuzzExpand(f *testing.F) {
	for _, b := range compressed(f, bytes.Repeat([]byte("stoa"), 100)) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range []string{"snappy", "zstd", "gzip"} {
			if out, err := Expand(name, b, 1<<16, room); err == nil && len(out) > 1<<16 {
				t.Errorf("%s: %d bytes, the limit is %d", name, len(out), 1<<16)
			}
		}
	})
}

// TestZstdWindows: the window of a streamed frame is larger than its content, whose size is not declared. It is read
// under a limit of the content's size, and no window is allocated.
func TestZstdWindows(t *testing.T) {
	raw := bytes.Repeat([]byte("0123456789abcdef"), 30_000)
	for _, window := range []int{1 << 20, 2 << 20, 8 << 20, 128 << 20} {
		for _, n := range []int{1, 12, 4000, 200_000, len(raw)} {
			var b bytes.Buffer
			w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			w.Write(raw[:n/2])
			w.Flush() // so that the header does not declare a size
			w.Write(raw[n/2 : n])
			w.Close()
			b.Bytes()[5] = byte(bits.Len(uint(window))-1-10) << 3 // this encoder asks for no larger window than it uses
			var h zstd.Header
			if err := h.Decode(b.Bytes()); err != nil || h.HasFCS || h.WindowSize != uint64(window) {
				t.Fatalf("%+v, %v", h, err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := Expand("zstd", b.Bytes(), int64(n), room)
			runtime.ReadMemStats(&after)
			if err != nil || !bytes.Equal(got, raw[:n]) {
				t.Errorf("window %d, %d bytes: %d bytes, %v", window, n, len(got), err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
				t.Errorf("window %d, %d bytes: %d bytes of memory", window, n, took)
			}
			if n > 1 {
				if _, err := Expand("zstd", b.Bytes(), int64(n)-1, room); !errors.Is(err, fault.Limit) {
					t.Errorf("window %d, %d bytes: %v, want a limit", window, n, err)
				}
			}
		}
	}
}
