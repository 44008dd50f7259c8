package kudu_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/format/kudu/internal/pbc"
	"stoa/store"
)

// earlier returns a superblock of a tablet as it was before its last rowset was flushed, or before any was.
func earlier(tb *kudu.Tablet, any bool) []byte {
	old := *tb
	old.RowSets = slices.Clone(tb.RowSets)
	if old.RowSets = old.RowSets[:len(old.RowSets)-1]; any {
		old.RowSets, old.LastDurableMRS = nil, -1
	}
	return pbc.Append(nil, "kudu.tablet.TabletSuperBlockPB", old.Append(nil))
}

// TestCorpusListOfEarlierCopy: the list of a place with a server and an earlier copy of it, whichever comes first, has
// the rows, bytes and rowsets of the server alone. It counts one server, and says which copy the census calls what.
func TestCorpusListOfEarlierCopy(t *testing.T) {
	whole, _, tablets := archive(t, "fs_file")
	alone := entries(t, store.NewMemory(whole), "")
	for _, twin := range []string{"a", "twin"} {
		files := maps.Clone(whole)
		for name, b := range copied(whole) {
			if rest, ok := strings.CutPrefix(name, "twin/"); ok {
				files[twin+"/"+rest] = b
			}
		}
		stale := []string{"d_raw", "d_minor"}
		for _, name := range stale {
			tb := tablets[name]
			files[twin+"/"+strings.TrimPrefix(tb.Object, "tserver/")] = earlier(tb, false)
			delete(files, twin+"/wal/wals/"+tb.ID+"/wal-000000001")
		}
		_, states, _, _ := censusIn(t, files)
		for name, e := range entries(t, store.NewMemory(files), "") {
			want := alone[name]
			if e.Rows != want.Rows || e.Bytes != want.Bytes || len(e.Parts) != len(want.Parts) {
				t.Errorf("%s: %s: %d rows, %d bytes, %d tablets, want %d, %d, %d", twin, name, e.Rows, e.Bytes,
					len(e.Parts), want.Rows, want.Bytes, len(want.Parts))
				continue
			}
			for i, p := range e.Parts {
				facts := map[string]string{}
				for _, m := range p.Meta {
					facts[m.Key] = m.Value
				}
				copies := "2"
				for _, state := range states[p.Table] {
					if state != "whole" {
						copies += "; " + state + ": " + twin + "/wal"
					}
				}
				if facts["replicas"] != "" || facts["copies"] != copies ||
					slices.Contains(stale, name) != (copies != "2") {
					t.Errorf("%s: %s: %+v, want copies %s", twin, p.Table, p.Meta, copies)
				}
				for _, m := range want.Parts[i].Meta {
					if facts[m.Key] != m.Value && m.Key != "server" {
						t.Errorf("%s: %s: %s %s, want %s", twin, p.Table, m.Key, facts[m.Key], m.Value)
					}
				}
			}
		}
	}
}

// TestCorpusCensusOfLaterLog: a log of a later state than the superblock beside it, and one without a superblock that
// has later operations than each replica, are in the census, with the replica that is not called whole; those of a
// healthy server are not, nor a log that has no more than the replica.
func TestCorpusCensusOfLaterLog(t *testing.T) {
	whole, _, tablets := archive(t, "fs_file")
	how, err := stoa.Listing("census", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	logs := func(files map[string][]byte) map[string]string {
		out := map[string]string{}
		if _, err := how.List(context.Background(), format.Target{Tree: store.NewMemory(files)}, format.OpenOptions{},
			func(v []string) {
				if v[12] != "" {
					out[v[0]] = v[7] + " " + v[12]
				}
			}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := logs(whole); len(got) > 0 {
		t.Errorf("of a healthy server: %v", got)
	}
	n := 0
	for name, tb := range tablets {
		if tb.LastDurableMRS < 2 && name != "d_wal" || len(tb.RowSets) == 0 {
			continue
		}
		n++
		dir := "tserver/wal/wals/" + tb.ID
		files := maps.Clone(whole)
		files[tb.Object] = earlier(tb, true)
		if got := logs(files); len(got) != 1 || got[name] != "damaged "+dir {
			t.Errorf("%s, an earlier superblock: %v", name, got)
		}
		files = copied(whole)
		delete(files, tb.Object)
		if got := logs(files); len(got) > 0 {
			t.Errorf("%s, a superblock in a copy: %v", name, got)
		}
		copied := "twin/" + strings.TrimPrefix(tb.Object, "tserver/")
		files[copied] = earlier(tb, true)
		delete(files, "twin/wal/wals/"+tb.ID+"/wal-000000001")
		if got := logs(files); len(got) > 1 || len(got) == 1 && got[name] != "damaged "+dir {
			t.Errorf("%s, an earlier superblock in a copy: %v", name, got)
		} else if len(got) == 0 {
			t.Errorf("%s, an earlier superblock in a copy: no log", name)
		}
	}
	if n < 2 {
		t.Errorf("%d tables", n)
	}
}
