package laws_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"stoa"
	"stoa/store"
)

// TestDamageBetweenPages: a flipped bit in what is not a page, but shows that pages have not moved, costs no cell: the
// copies of column metadata, indexes and synchronization blocks between the pages and the footer.
func TestDamageBetweenPages(t *testing.T) {
	const rows = 600
	table := alikeColumns(rows)
	defer table.Release()
	for _, x := range []struct {
		format string
		opts   map[string]string
	}{
		{"redfile", map[string]string{"compression": "none"}},
		{"redfile", map[string]string{"compression": "none", "index": "false", "sync": "0"}},
		{"redfile", map[string]string{"compression": "none", "page-size": "1000", "row-group-rows": "200"}},
		{"parquet", map[string]string{"compression": "none", "dictionary": "false", "encoding": "plain"}},
		{"parquet", map[string]string{"compression": "none", "dictionary": "false", "encoding": "plain",
			"page-index": "false"}},
	} {
		mem := store.NewMemory(nil)
		w, err := stoa.Create(t.Context(), "t", table.Schema(), stoa.CreateOptions{To: x.format, Opts: x.opts,
			Sink: mem.Sink("t")})
		if err == nil {
			err = w.Write(t.Context(), table)
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		whole := mem.Bytes("t")
		tried, step := 0, 1
		if testing.Short() {
			step = 5
		}
		for _, span := range betweenPages(t, whole) {
			for at := span[0]; at < span[1]; at += step {
				tried++
				bad := bytes.Clone(whole)
				bad[at] ^= 1 << (at % 8)
				if wrong, lost := compare(t.Context(), bad, table, false); wrong != "" || lost > 0 {
					t.Errorf("%s %v: byte %d of [%d, %d): %s, lost %d", x.format, x.opts, at, span[0], span[1], wrong,
						lost)
				}
			}
		}
		t.Logf("%s %v: %d flips", x.format, x.opts, tried)
		if tried < 40 {
			t.Errorf("%s %v: only %d flips", x.format, x.opts, tried)
		}
	}
}

// betweenPages returns the spans of a file between the first page and the footer that are in no page.
func betweenPages(t *testing.T, whole []byte) (out [][2]int) {
	t.Helper()
	for n, err := range stoa.Describe(t.Context(), "t", stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{
		Tree: store.NewMemory(map[string][]byte{"t": whole})}}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(n.Name, "file_metadata") || string(whole[:4]) == "PAR1" &&
			n.At.End() > int64(len(whole)-8)-int64(binary.LittleEndian.Uint32(whole[len(whole)-8:])) && n.At.Off > 0 {
			return out // the nodes come in the order of their offsets
		}
		if n.Inner < 0 && (n.Name == "column_metadata" || strings.HasPrefix(n.Name, "index_page") ||
			strings.HasSuffix(n.Name, "meta_data") || strings.HasSuffix(n.Name, "_index")) {
			out = append(out, [2]int{int(n.At.Off), int(n.At.Off + n.At.Len)})
		}
	}
	t.Fatal("no footer")
	return nil
}
