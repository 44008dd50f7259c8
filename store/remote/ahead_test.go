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
