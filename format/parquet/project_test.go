package parquet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stoa/internal/scan"
	"stoa/vec"
)

// TestNestedProjection reads parts of the nested columns of a file by pyarrow, with the bytes of the other leaves
// overwritten: leaves that are not wanted are not read.
func TestNestedProjection(t *testing.T) {
	whole := golden(t, "testdata/enc-plain.v2.parquet").Bytes("t")
	for _, name := range []string{"st.x", "st.y.w", "st.y", "st", "ls", "m"} {
		r := readerOf(t, whole)
		b := slices.Clone(whole)
		for g := range r.Footer.RowGroups {
			for leaf := range r.Footer.Schema.NumColumns() {
				if path := r.Footer.Schema.Column(leaf).Path(); path != name && !strings.HasPrefix(path, name+".") {
					s := r.ChunkSpan(g, leaf)
					clear(b[s.Off:s.End()])
				}
			}
		}
		read := func(b []byte) (rows []string) {
			for rec, err := range scanned(t.Context(), readerOf(t, b),
				scan.Spec{Columns: []string{name}, Rows: vec.Range{To: 150}}) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for i := range int(rec.NumRows()) {
					rows = append(rows, rec.Column(0).ValueStr(i))
				}
			}
			return rows
		}
		if got, want := read(b), read(whole); len(want) != 150 || !slices.Equal(got, want) {
			t.Errorf("%s: got %d rows, want the %d rows of the intact file: %s", name, len(got), len(want),
				fmt.Sprint(got))
		}
	}
}
