package ipc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/cells"
	"stoa/store"
	"stoa/vec"
)

// golden opens a file that another implementation wrote (testdata/make.py).
func golden(t testing.TB, path string) *store.Memory {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return store.NewMemory(map[string][]byte{"t": b})
}

// compare compares the rows with the lines of a JSON file.
func compare(t *testing.T, name, lines string, got []arrow.RecordBatch) {
	t.Helper()
	want, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := cells.NewJSONLWriter(&b, got[0].Schema())
	for _, g := range got {
		if err := w.Write(g); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	ours, theirs := strings.Split(strings.TrimSpace(b.String()), "\n"),
		strings.Split(strings.TrimSpace(string(want)), "\n")
	if len(ours) != len(theirs) {
		t.Fatalf("%s: %d rows, want %d", name, len(ours), len(theirs))
	}
	for i := range ours {
		var x, y any
		if err := json.Unmarshal([]byte(ours[i]), &x); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(theirs[i]), &y); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("%s: row %d\n got %s\nwant %s", name, i, ours[i], theirs[i])
		}
	}
}

func TestGolden(t *testing.T) {
	for pattern, lines := range map[string]string{"plain*arrow*": "plain", "rare*arrow*": "rare",
		"v4.arrow": "plain", "legacy.arrows": "plain",
		"polars.*.arrow": "polars"} {
		files, _ := filepath.Glob("testdata/" + pattern)
		if len(files) == 0 {
			t.Fatal(pattern)
		}
		for _, f := range files {
			got, err := readAll(golden(t, f), nil, vec.Range{})
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			compare(t, f, "testdata/"+lines+".jsonl", got)
		}
	}
}

func TestGoldenDictionaries(t *testing.T) {
	for _, f := range []string{"replaced.arrows", "delta.arrow"} {
		got, err := readAll(golden(t, "testdata/"+f), nil, vec.Range{})
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		var words []string
		for _, g := range got {
			words = append(words, texts(g.Column(0))...)
		}
		if fmt.Sprint(words) != "[x y z x y w]" {
			t.Errorf("%s: %v", f, words)
		}
	}
}

func TestGoldenDamage(t *testing.T) {
	for _, f := range []string{"rare.lz4.arrows", "delta.arrow"} {
		whole := golden(t, "testdata/"+f).Bytes("t")
		step := 1
		if testing.Short() {
			step = 7
		}
		for i := 0; i < len(whole); i += step {
			b := bytes.Clone(whole)
			b[i] ^= 0xFF
			damaged(t, f, i, b)
			damaged(t, f, i, whole[:i])
		}
	}
}
