package stoa

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// TestPageLimitIsNamed: every format refuses a page that exceeds the limit with a message that names the page limit.
func TestPageLimitIsNamed(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	defer b.Release()
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 2<<20)
	for range 3 {
		for i := range text {
			text[i] = byte('a' + r.IntN(26))
		}
		b.Field(0).(*array.StringBuilder).Append(string(text))
	}
	rows := b.NewRecordBatch()
	defer rows.Release()
	refused := map[string]bool{}
	for i := range Formats {
		f := &Formats[i]
		if f.Create == nil || f.Open == nil {
			continue
		}
		tree := store.NewMemory(nil)
		w, err := Create(t.Context(), "t", sc, CreateOptions{To: f.Name, Sink: tree.Sink("t"), NoCheck: true})
		if err != nil { // it needs options, or directories
			continue
		}
		if err = w.Write(t.Context(), rows); err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Logf("%s: %v", f.Name, err)
			continue
		}
		src, err := Open(t.Context(), "t", OpenOptions{Tree: tree, From: f.Name, Limits: format.Limits{Page: 1 << 20}})
		if err == nil {
			for _, err = range src.Scan(t.Context(), ScanSpec{}) {
			}
			src.Close()
		}
		if refused[f.Name] = errors.Is(err, fault.Limit); refused[f.Name] &&
			!strings.Contains(err.Error(), "page limit") {
			t.Errorf("%s: got %v, want a message that names the page limit", f.Name, err)
		}
	}
	for _, name := range []string{"parquet", "redfile", "trevni", "trevni-avro", "cfile", "jsonl"} {
		if !refused[name] {
			t.Errorf("%s: got no error of class Limit, want one", name)
		}
	}
}
