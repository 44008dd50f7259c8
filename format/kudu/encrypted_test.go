package kudu_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// TestCorpusDecrypted reads a directory that a real server encrypted. Its rows are those of kudu perf loadgen:
// consecutive numbers from 0, first as the key, then as its double, then as one more in a string padded to 32 bytes.
func TestCorpusDecrypted(t *testing.T) {
	files := kudu.Unpack(t, filepath.Join(corpus(t), "special", "enc.tar.zst"))
	wrapped := []byte{0x52, 0x1e, 0x5e, 0x17, 0xfe, 0x08, 0x88, 0xf6, 0xae, 0x86, 0xa0, 0xcc, 0x41, 0xed, 0x6b, 0xf4}
	for i := range wrapped {
		wrapped[i] ^= 42
	}
	hexKey := fmt.Sprintf("%x", wrapped)
	answer := `{"name": "EK", "material": "` + base64.URLEncoding.EncodeToString(wrapped) + `"}`
	for _, c := range []struct {
		name, file string
		want       error // nil: it is read
	}{
		{"default", "", nil},
		{"one key", hexKey + "\n", nil},
		{"by server", "# keys\nf475153ff7b44f10a625af79b4af7853 " + hexKey, nil},
		{"an answer", answer, nil},
		{"another's key", "00112233445566778899aabbccddeeff " + hexKey, fault.Unsupported},
		{"no key", "# nothing", fault.Invalid},
		{"a short key", "0011", fault.Invalid},
		{"a wrong key", strings.Repeat("00", 16), fault.Corrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := maps.Clone(files)
			in["keys"] = []byte(c.file)
			o := stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: store.NewMemory(in),
				Typed: kudu.ReadOptions{Keys: "keys"}}
			if c.file == "" {
				o.Typed = kudu.ReadOptions{Keys: "default"}
			}
			tb, err := stoa.Open(context.Background(), "", o)
			if err != nil || c.want != nil {
				if !errors.Is(err, c.want) || err != nil && strings.Contains(err.Error(), hexKey) {
					t.Fatalf("got %v, want %v", err, c.want)
				}
				return
			}
			defer tb.Close()
			isLoadgen(t, tb)
			for f, err := range stoa.Verify(context.Background(), "", o) {
				if err != nil || f.Severity >= region.Error {
					t.Errorf("verify: %v, %+v", err, f)
				}
			}
		})
	}
}

// isLoadgen checks that a table has the 2,000 rows of kudu perf loadgen.
func isLoadgen(t *testing.T, tb *stoa.Table) {
	t.Helper()
	seen := map[int64]bool{}
	for b, err := range tb.Scan(context.Background(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		key, double, text := b.Column(0).(*array.Int64), b.Column(1).(*array.Int32), b.Column(2).(*array.String)
		for i := range int(b.NumRows()) {
			k := key.Value(i)
			want := fmt.Sprintf("%d.", 2*k+1)
			if want += strings.Repeat("x", 32-len(want)); int64(double.Value(i)) != 2*k || text.Value(i) != want ||
				seen[k] {
				t.Fatalf("key %d: got %d, %q, want %d, %q, once", k, double.Value(i), text.Value(i), 2*k, want)
			}
			seen[k] = true
		}
	}
	if len(seen) != 2000 {
		t.Errorf("got %d rows, want 2,000", len(seen))
	}
}
