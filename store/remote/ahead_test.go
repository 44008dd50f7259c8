package remote_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stoa/store"
	"stoa/store/remote"
	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

// TestReadAhead: sequential reads of an object wait for few responses, and return the right bytes, whatever fails;
// random reads fetch little more than was requested.
func TestReadAhead(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	want := make([]byte, 24<<20+12345)
	for i := range want {
		want[i] = byte(r.Uint32())
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big"), want, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		share    float64
		jump     bool
		requests int64
	}{{"in order", 0, false, 30}, {"in order, with faults", 0.1, false, 80}, {"jumping", 0, true, 70}} {
		faults := remotetest.NewFaults(c.share, 3)
		faults.Latency = 5 * time.Millisecond
		srv := httptest.NewServer(faults.On(remotetest.Web(dir, web.Index)))
		tree := remote.New(nil, remote.Options{Wait: time.Millisecond})
		ctx := context.Background()
		name, err := tree.Enter(ctx, srv.URL+"/big")
		if err != nil {
			t.Fatal(err)
		}
		src, err := tree.Open(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		const step = 200_000
		p := make([]byte, step)
		reads := int64(0)
		for off := int64(0); off < int64(len(want)); off += step {
			at := off
			if c.jump {
				if at = r.Int64N(int64(len(want))); reads == 50 {
					break
				}
			}
			reads++
			n, _ := src.ReadAt(ctx, p, at)
			if !bytes.Equal(p[:n], want[at:min(at+step, int64(len(want)))]) {
				t.Fatalf("%s: other bytes at %d", c.name, at)
			}
		}
		if u := tree.Usage(); u.All() > c.requests || c.jump && u.Bytes > 4*reads*step {
			t.Errorf("%s: %d requests and %d bytes for %d reads, want at most %d", c.name, u.All(), u.Bytes, reads,
				c.requests)
		}
		srv.Close()
	}
}

// TestStreamsShareTheCache: several objects that are read side by side, at different speeds, are received once, with
// requests of megabytes, although they do not fit into the cache together.
func TestStreamsShareTheCache(t *testing.T) {
	dir := t.TempDir()
	sizes := []int{2 << 20, 10 << 20, 30 << 20, 8<<20 + 7, 15 << 20}
	var total int64
	for i, n := range sizes {
		b := make([]byte, n)
		for k := 0; k < n; k += 997 {
			b[k] = byte(k / 997 * (i + 3))
		}
		total += int64(n)
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	faults := remotetest.NewFaults(0, 1)
	faults.Latency = 10 * time.Millisecond
	srv := httptest.NewServer(faults.On(remotetest.Web(dir, web.Index)))
	defer srv.Close()
	const keep = 12 << 20
	tree := remote.New(nil, remote.Options{Wait: time.Millisecond, Keep: keep})
	ctx := context.Background()
	var src []store.Source
	for i := range sizes {
		name, err := tree.Enter(ctx, srv.URL+"/"+string(rune('a'+i)))
		if err != nil {
			t.Fatal(err)
		}
		s, err := tree.Open(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		src = append(src, s)
	}
	const steps = 400
	p := make([]byte, 1<<20)
	for step := range steps {
		for i, n := range sizes {
			from, to := n/steps*step, n/steps*(step+1)
			if step == steps-1 {
				to = n
			}
			if k, err := src[i].ReadAt(ctx, p[:to-from], int64(from)); k < to-from {
				t.Fatal(err)
			}
			for k := (from + 996) / 997 * 997; k < to; k += 997 {
				if p[k-from] != byte(k/997*(i+3)) {
					t.Fatalf("object %d: another byte at %d", i, k)
				}
			}
		}
	}
	u := tree.Usage()
	t.Logf("%d requests, %d of %d bytes", u.All(), u.Bytes, total)
	if most := total / (640 << 10); u.All() > most || u.Bytes > total+total/50 {
		t.Errorf("%d requests and %d bytes, want at most %d and %d", u.All(), u.Bytes, most, total+total/50)
	}
}
