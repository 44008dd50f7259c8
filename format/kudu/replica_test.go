package kudu_test

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format/kudu"
	"stoa/store"
)

// Three copies of a server's directory, each with other damage: every table is read whole. What is damaged in all three is lost, and
// told.
func TestCorpusReplicas(t *testing.T) {
	dir := corpus(t)
	one := load(t, filepath.Join(dir, "fs_log"))
	f, tablets := layout(t, store.NewMemory(one))
	copies := map[string][]byte{}
	for _, root := range []string{"a", "b", "c"} {
		for name, b := range one {
			copies[root+"/"+name] = b
		}
	}
	hit := func(files map[string][]byte, root, object string, at int64) {
		files[root+"/"+object] = flipped(files[root+"/"+object], at)
	}
	for i, table := range tableNames(tablets) {
		files := maps.Clone(copies)
		n := 0
		for kind, spans := range blocksOf(t, f, tablets, table) {
			for k, at := range spans {
				n++
				root := string("abc"[(n+i)%3])
				other := string("abc"[(n+i+1)%3])
				hit(files, root, at.Object, at.Off+20)                      // the first page
				hit(files, other, at.Object, at.End()-20)                   // the footer
				if kind != "bloom" && at.Len > 9000 && k == 0 && n%2 == 0 { // somewhere inside
					hit(files, string("abc"[(n+i+2)%3]), at.Object, at.Off+at.Len*2/3)
				}
			}
		}
		rows, lost, err := readAll(t, store.NewMemory(files), "#"+table, nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
		if err != nil {
			t.Fatal(table, err)
		}
		if len(lost) > 0 {
			t.Errorf("%s: %d losses, the first: %+v", table, len(lost), lost[0])
		}
		compare(t, rows, final(t, dir, table))
	}

	// the same page in all three
	files := maps.Clone(copies)
	at := blocksOf(t, f, tablets, "key_int32")["v"][0]
	for _, root := range []string{"a", "b", "c"} {
		hit(files, root, at.Object, at.Off+40)
	}
	tree := store.NewMemory(files)
	rows, lost, err := readAll(t, tree, "#key_int32", nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
	if err != nil {
		t.Fatal(err)
	}
	if gone := missing(t, rows, expected(t, dir, "key_int32", "final")); len(gone) == 0 || int64(len(gone)) != lostRows(t, lost) {
		t.Errorf("%d rows are missing: %+v", len(gone), lost)
	}
	if _, _, err = readAll(t, tree, "#key_int32", nil, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
		t.Error(err)
	}

	// one copy is without its containers' records, another without superblocks
	files = maps.Clone(copies)
	for name := range copies {
		if filepath.Ext(name) == ".metadata" && name[0] == 'a' || name[0] == 'b' && slices.ContainsFunc(tablets, func(tb *kudu.Tablet) bool { return "b/"+tb.Object == name }) {
			delete(files, name)
		}
	}
	rows, lost, err = readAll(t, store.NewMemory(files), "#d_raw", nil, stoa.ScanSpec{})
	if err != nil || len(lost) > 0 {
		t.Fatal(err, lost)
	}
	compare(t, rows, expected(t, dir, "d_raw", "final"))
}
