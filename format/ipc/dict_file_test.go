package ipc

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/store"
)

// TestReplacedDictionary: a file in which a dictionary is replaced, as in a stream it may be, is damaged: nothing
// says which of the two a batch means.
func TestReplacedDictionary(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "d", Nullable: true,
		Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}}}, nil)
	var file bytes.Buffer
	// without dictionaries of its own the writer passes on what comes
	w := &Writer{lib: ipc.NewWriterWithPayloadWriter(&frame{w: &file}, options(sc)...), sc: sc}
	for seed := range uint64(2) {
		table := formattest.RandomTable(rand.New(rand.NewPCG(seed, 7)),
			formattest.TableOptions{Rows: 30, Columns: 1, Depth: 1, Fields: sc.Fields()})
		if err := w.Write(table.Batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tree := store.NewMemory(map[string][]byte{"f.arrow": file.Bytes()})
	found := ""
	for f := range Format.Verify(t.Context(), format.Target{Tree: tree, Name: "f.arrow"}, format.OpenOptions{}) {
		found += f.Code + ": " + f.Message + "\n"
	}
	if !strings.Contains(found, "replaces dictionary") {
		t.Errorf("verify says %q", found)
	}
}
