package carbon_test

import (
	"context"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	mem "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/store"
)

// piped is a tree whose files are streams, which cannot be read from the end.
type piped struct{ store.Tree }

type stream struct{ store.Source }

func (stream) Unsized() bool { return true }

func (p piped) Open(ctx context.Context, name string) (store.Source, error) {
	s, err := p.Tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return stream{s}, nil
}

// TestNameless: if the user names the format, a data file of each version is read under any file name, even from a
// stream.
func TestNameless(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(mem.DefaultAllocator, sc)
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"x", "y", "z"}, nil)
	rows := b.NewRecordBatch()
	for _, version := range []string{"1", "2", "3"} {
		m := store.NewMemory(nil)
		w, err := carbon.Format.Create(t.Context(), m.Sink("t.carbondata"), sc,
			format.WriteOptions{Opts: map[string]string{"version": version}})
		if err == nil {
			err = w.Write(t.Context(), rows)
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		nameless := store.NewMemory(map[string][]byte{"t": m.Bytes("t.carbondata")})
		for _, tree := range []store.Tree{nameless, piped{nameless}} {
			got := []string{}
			tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{From: "carbon", Tree: tree})
			if err == nil {
				defer tab.Close()
				for b, serr := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
					if err = serr; err != nil {
						break
					}
					for i := range b.Column(0).Len() {
						got = append(got, b.Column(0).ValueStr(i))
					}
				}
			}
			if err != nil || !slices.Equal(got, []string{"x", "y", "z"}) {
				t.Errorf("version %s, %T: got %q, %v", version, tree, got, err)
			}
		}
	}
}
