package ipc

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/store"
)

// TestReplacedDictionary: a file that replaces a dictionary, as a stream may do, is damaged: nothing determines which
// of the two a batch refers to.
func TestReplacedDictionary(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "d", Nullable: true,
		Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}}}, nil)
	var file bytes.Buffer
	// without dictionaries of its own, the writer passes on those of the batches
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

// TestEmptyDictionaryFirst: a file's first dictionary may have no values, at the top level or in a list, and the
// dictionaries of later batches are still added to it: the file can be read, and has the cells that were written.
func TestEmptyDictionaryFirst(t *testing.T) {
	for value, texts := range map[arrow.DataType][]string{arrow.BinaryTypes.String: {"", "a", "b"},
		arrow.BinaryTypes.Binary: {"YWJj", "", "eHl6"}, arrow.PrimitiveTypes.Float64: {"1.5", "0", "-0"},
		&arrow.FixedSizeBinaryType{ByteWidth: 3}: {"YWJj", "eHl6"}} {
		d := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: value}
		sc := arrow.NewSchema([]arrow.Field{{Name: "d", Type: d, Nullable: true},
			{Name: "l", Type: arrow.ListOf(d), Nullable: true}}, nil)
		var want, got []string
		var file bytes.Buffer
		w := NewFileWriter(&file, sc)
		for _, items := range [][]string{nil, nil, texts, nil, texts[1:]} {
			batch := dictionaryBatch(t, sc, items)
			if err := w.Write(batch); err != nil {
				t.Fatal(err)
			}
			want = append(want, cellsOf(batch)...)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := ipc.NewFileReader(bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(value, err)
		}
		for i := range r.NumRecords() {
			batch, err := r.RecordBatch(i)
			if err != nil {
				t.Fatal(value, err)
			}
			got = append(got, cellsOf(batch)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%q, want\n%q", value, got, want)
		}
	}
}

// dictionaryBatch has a null and the items in its first column, and lists of them in the second.
func dictionaryBatch(t *testing.T, sc *arrow.Schema, items []string) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	lists := b.Field(1).(*array.ListBuilder)
	b.Field(0).AppendNull()
	lists.Append(true)
	for _, text := range items {
		lists.Append(true)
		for _, f := range []array.Builder{b.Field(0), lists.ValueBuilder()} {
			if err := f.AppendValueFromString(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.NewRecordBatch()
}

func cellsOf(b arrow.RecordBatch) (cells []string) {
	for _, c := range b.Columns() {
		for i := range c.Len() {
			cells = append(cells, c.ValueStr(i))
		}
	}
	return cells
}
