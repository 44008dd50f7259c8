package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
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

// TestRescueCountsWhatItApplies: the operations that only logs had are those before the snapshot. The client made 125
// changes of d_wal after the last flush, and its first operation was flushed.
func TestRescueCountsWhatItApplies(t *testing.T) {
	cluster, _ := deadCluster(t)
	dir := t.TempDir()
	writeFiles(t, filepath.Join(dir, "in"), cluster)
	for at, want := range map[string]int64{"first": 0, "last": 125} {
		r, _ := rescueInto(t, []string{filepath.Join(dir, "in")}, filepath.Join(dir, at), "--at", at, "--partial")
		for _, tb := range r.Tables {
			if n := map[bool]int64{true: want}[tb.Table == "d_wal"]; tb.Replayed != n {
				t.Errorf("at %s, %s: %d operations of the log, want %d", at, tb.Table, tb.Replayed, n)
			}
		}
	}
}

// TestLongNamesOfTables: Kudu's longest names of tables, of 256 characters, and any beginning with the same characters,
// become different files, with all rows.
func TestLongNamesOfTables(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, ".", map[string][]byte{"in.csv": []byte("k,v\n1,a\n2,b\n"), "in/notes": nil})
	ends := []string{"a", "b", "/", "é", "中"}
	for i, end := range ends {
		for _, n := range []int{200, 230, 256} {
			name := strings.Repeat([]string{"x", "/", "é", "中", "%"}[i], n-1) + end
			must(t, "convert", "in.csv", "-o", filepath.Join("in", fmt.Sprint(i, n)), "--to", "kudu-fs", "--opt",
				"key=k", "--opt", "table="+name)
			same := strings.Repeat("y", n-1) + end
			must(t, "convert", "in.csv", "-o", filepath.Join("in", fmt.Sprint("y", i, n)), "--to", "kudu-fs", "--opt",
				"key=k", "--opt", "table="+same)
		}
	}
	for _, args := range [][]string{{"rescue"}, {"convert", "--all"}, {"rescue", "--file-size", "1MB"}} {
		out := strings.Join(args, "")
		var stdout, stderr bytes.Buffer
		run(context.Background(), append(args, "in", "-o", out), strings.NewReader(""), &stdout, &stderr)
		files, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err, &stderr)
		}
		n := 0
		for _, f := range files {
			if strings.HasPrefix(f.Name(), "report.") || strings.HasPrefix(f.Name(), ".") {
				continue
			}
			n++
			if got := strings.TrimSpace(must(t, "count", filepath.Join(out, f.Name()))); got != "2" {
				t.Errorf("%s: %s rows in %s", out, got, f.Name())
			}
		}
		if n != 2*3*len(ends) {
			t.Errorf("%s: %d outputs of %d tables: %.2000s", out, n, 2*3*len(ends), &stderr)
		}
	}
}

// TestEmptyFlags: a flag of a reading option without a value is an error, not no flag.
func TestEmptyFlags(t *testing.T) {
	for _, w := range cli.NewOptionFlags() {
		if w.Value != "" {
			continue
		}
		status := run(context.Background(), []string{"count", "x.parquet", "--" + w.Flag, ""}, strings.NewReader(""),
			io.Discard, io.Discard)
		if status != cli.StatusUse {
			t.Errorf("--%s with nothing: status %d", w.Flag, status)
		}
	}
}

// TestRescueListsLinkedDisks: the sources of a place whose directories are links to disks, and one link around again,
// are the files of the disks, with the same sizes and checksums.
func TestRescueListsLinkedDisks(t *testing.T) {
	cluster, _ := deadCluster(t)
	t.Chdir(t.TempDir())
	writeFiles(t, "disks", cluster)
	if err := os.Mkdir("place", 0o777); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"m": "../disks/master", "t": "../disks/tserver", "z": "..", "no": "gone"} {
		if err := os.Symlink(to, filepath.Join("place", name)); err != nil {
			t.Fatal(err)
		}
	}
	sums := func(place, out string) (n, size int64, all []string) {
		run(context.Background(), []string{"rescue", place, "-o", out}, strings.NewReader(""), io.Discard, io.Discard)
		var r rescued
		if b, err := os.ReadFile(filepath.Join(out, "report.json")); err != nil || json.Unmarshal(b, &r) != nil {
			t.Fatal(err)
		}
		for _, s := range r.Sources {
			if s.Checksum != "" {
				n, size, all = n+1, size+s.Bytes, append(all, s.Checksum)
			}
		}
		slices.Sort(all)
		return n, size, all
	}
	n, size, want := sums("disks", "a")
	if m, length, got := sums("place", "b"); n == 0 || m != n || length != size || !slices.Equal(got, want) {
		t.Errorf("%d files of %d bytes, %d of %d without links", m, length, n, size)
	}
}

// TestMasterAlone: ls and the verbs that read a table end with the same status for a master without tablet servers, and
// a mark of the byte order before the first place of a list changes nothing.
func TestMasterAlone(t *testing.T) {
	cluster, _ := deadCluster(t)
	t.Chdir(t.TempDir())
	writeFiles(t, "", cluster)
	writeFiles(t, "", map[string][]byte{"bom": []byte("\ufeffmaster\r\ntserver\r\n"),
		"list": []byte("master\ntserver")})
	of := func(args ...string) (int, string) {
		var out bytes.Buffer
		status := run(context.Background(), args, strings.NewReader(""), &out, io.Discard)
		return status, out.String()
	}
	want, _ := of("ls", "master")
	for _, verb := range []string{"count", "head", "schema"} {
		if got, _ := of(verb, "master"); got != want || want == 0 {
			t.Errorf("%s: status %d, %d of ls", verb, got, want)
		}
	}
	_, plain := of("ls", "@list")
	if status, marked := of("ls", "@bom"); status != 0 || strings.ReplaceAll(marked, "@bom", "@list") != plain {
		t.Errorf("status %d: %s", status, marked)
	}
}
