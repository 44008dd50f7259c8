package serve

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/andybalholm/brotli"
)

var update = flag.Bool("update", false, "write page.br")

// TestPackedPage: page.br holds the files of page, and the sentences, byte for byte.
func TestPackedPage(t *testing.T) {
	names, err := filepath.Glob("page/*")
	if err != nil || len(names) < 5 {
		t.Fatalf("%q, %v", names, err)
	}
	want := map[string]string{}
	for _, name := range append(names, "words/fields.tsv") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Base(name)] = string(b)
	}
	if *update {
		var packed bytes.Buffer
		w := brotli.NewWriterLevel(&packed, brotli.BestCompression)
		if err := json.NewEncoder(w).Encode(want); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("page.br", packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !maps.Equal(pageFiles(), want) {
		t.Error("page.br does not hold the files of page: go test ./serve -run TestPackedPage -update writes it")
	}
}
