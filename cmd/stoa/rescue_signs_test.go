package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// TestRescueWithoutLogs: whether one log is missing or all are, a table that lost its log is not whole, and the number
// of rows lost is not called exact; a table that has its log is whole, with all rows of the client.
func TestRescueWithoutLogs(t *testing.T) {
	cluster, rows := deadCluster(t)
	const logs = "tserver/wal/wals/"
	dir := t.TempDir()
	writeFiles(t, filepath.Join(dir, "whole"), cluster)
	whole, status := rescueOf(t, filepath.Join(dir, "all"), filepath.Join(dir, "whole"))
	if status != 0 {
		t.Fatal(status)
	}
	one := ""
	for _, tb := range whole.Tables {
		if tb.Table == "d_wal" {
			one = logs + tb.Tablets[0].Tablet + "/"
		}
	}
	for _, x := range []struct{ what, below string }{{"one", one}, {"all", logs}} {
		files := maps.Clone(cluster)
		for name := range files {
			if strings.HasPrefix(name, x.below) {
				delete(files, name)
			}
		}
		dir := t.TempDir()
		writeFiles(t, filepath.Join(dir, "in"), files)
		r, status := rescueOf(t, filepath.Join(dir, "out"), filepath.Join(dir, "in"))
		if status != 3 || r.Whole {
			t.Errorf("%s: status %d, whole %t", x.what, status, r.Whole)
		}
		for _, tb := range r.Tables {
			if lost := x.what == "all" || tb.Table == "d_wal"; tb.Whole == lost || tb.Exact == lost {
				t.Errorf("%s: table %s: whole %t, exact %t", x.what, tb.Table, tb.Whole, tb.Exact)
			} else if !lost && (tb.Rows == nil || *tb.Rows != rows[tb.Table]) {
				t.Errorf("%s: table %s has not all of its %d rows", x.what, tb.Table, rows[tb.Table])
			}
		}
	}
}

// TestRescueBesideAnotherCluster: a server of another cluster, whose tables the master's catalogue does not list, takes
// nothing from the tables that it lists.
func TestRescueBesideAnotherCluster(t *testing.T) {
	cluster, rows := deadCluster(t)
	dir := t.TempDir()
	writeFiles(t, dir, cluster)
	r, status := rescueOf(t, filepath.Join(t.TempDir(), "out"), dir, filepath.Join("..", "..", "format", "kudu",
		"testdata", "log"))
	if status != 3 || len(r.Tables) <= len(rows) {
		t.Errorf("status %d, %d tables", status, len(r.Tables))
	}
	for _, tb := range r.Tables {
		if n, own := rows[tb.Table]; own != tb.Whole || own && *tb.Rows != n {
			t.Errorf("table %s: whole %t, %v", tb.Table, tb.Whole, tb.Why)
		}
	}
}

// TestInKindSaysWhatVerifySays: if no server has to be mended, because another copy of it is whole, the status of
// rescue --in-kind is that of verify, and the damage is named.
func TestInKindSaysWhatVerifySays(t *testing.T) {
	cluster, _ := deadCluster(t)
	dir := t.TempDir()
	two := map[string][]byte{}
	block := ""
	for name, b := range cluster {
		if rest, ok := strings.CutPrefix(name, "tserver/"); ok {
			two["a/"+rest], two["b/"+rest] = b, b
			if len(filepath.Base(name)) == 16 && len(b) > 4096 {
				block = max(block, rest)
			}
		}
	}
	for _, gone := range []string{"", block} {
		delete(two, "b/"+gone)
		in := filepath.Join(dir, "in"+filepath.Base(gone))
		writeFiles(t, in, two)
		var verified, mended bytes.Buffer
		want := run(context.Background(), []string{"verify", in}, strings.NewReader(""), &verified, io.Discard)
		got := run(context.Background(), []string{"rescue", "--in-kind", in, "-o", filepath.Join(dir, "out")},
			strings.NewReader(""), &mended, io.Discard)
		if got != want || want != 3*len(gone)/max(len(gone), 1) || gone != "" &&
			!strings.Contains(mended.String(), filepath.Base(gone)[1:]) {
			t.Errorf("without %q: status %d, %d of verify: %s", gone, got, want, &mended)
		}
	}
}
