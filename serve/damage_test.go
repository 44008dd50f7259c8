package serve_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedFiles damages files of every format, by bits turned over, a cut, and bytes put in, and asks every address
// about them: each answer is a document or an error of a known kind, and none is a panic, which newServer reports.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	s := newServer(t, nil, dir)
	r := rand.New(rand.NewPCG(5, 6))
	seen := map[int]int{}
	files := corpusFiles(t)
	if testing.Short() {
		r.Shuffle(len(files), func(i, k int) { files[i], files[k] = files[k], files[i] })
		files = files[:24]
	}
	for _, from := range files {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		switch r.IntN(4) {
		case 0:
			b = b[:r.IntN(len(b))]
		case 1:
			at := r.IntN(len(b))
			b = append(append(append([]byte{}, b[:at]...), make([]byte, 1+r.IntN(64))...), b[at:]...)
		default:
			for range 1 + r.IntN(20) {
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			}
		}
		name := filepath.Join(dir, filepath.Base(from))
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, path := range byName {
			w := get(s, path+"name="+url.QueryEscape(name))
			seen[w.Code]++
			switch w.Code {
			case 200, 400, 404, 413, 422:
			default:
				t.Errorf("%s of damaged %s: got %d %.500s", path, from, w.Code, w.Body)
			}
			if !strings.HasPrefix(path, "/api/export") && !strings.HasPrefix(path, "/api/verify") &&
				!json.Valid(w.Body.Bytes()) {
				t.Errorf("%s of damaged %s: this is no JSON: %.300s", path, from, w.Body)
			}
		}
		os.Remove(name)
	}
	if seen[200] < len(files) || seen[422] < len(files)/2 {
		t.Errorf("the answers are of one kind: %v", seen)
	}
	t.Logf("%d files: %v", len(files), seen)
}
