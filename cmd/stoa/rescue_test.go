package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"stoa/cmd/stoa/internal/cli"
)

// rescued is the part of OUT/report.json that tests check.
type rescued struct {
	Whole    bool
	Tables   []rescuedOne
	Unnamed  []struct{ State, Tablet string }
	Findings []rescuedFinding
	Sources  []struct {
		File, Checksum string
		Bytes          int64
	}
}

type rescuedFinding struct{ Code, Severity string }

// rescuedOne is a table of the report.
type rescuedOne struct {
	Table, Output string
	Rows          *int64
	Lost          *int64 `json:"rows_lost"`
	Exact         bool   `json:"rows_lost_exact"`
	Whole         bool
	Why           []string                `json:"why_not"`
	Replayed      int64                   `json:"replayed_operations"`
	Last          struct{ Hybrid string } `json:"last_operation"`
	Tablets       []struct{ Tablet string }
	ReadTo        []struct{ Part, Hybrid string } `json:"read_to"`
	Back          struct {
		Checksum, Verdict string
	} `json:"read_back"`
}

// deadCluster returns the directories of a real master and tablet server, and the number of rows of each table that a
// client read.
func deadCluster(t *testing.T) (files map[string][]byte, rows map[string]int64) {
	t.Helper()
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: the script rescue.txtar has a small cluster")
	}
	dir = filepath.Join(dir, "kudu")
	f, err := os.Open(filepath.Join(dir, "fs_file", "full_with_wal.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files, rows = map[string][]byte{}, map[string]int64{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[filepath.Clean(h.Name)], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	finals, _ := filepath.Glob(filepath.Join(dir, "expected", "*.final.jsonl.gz"))
	for _, name := range finals {
		table, _, _ := strings.Cut(filepath.Base(name), ".")
		rows[table] = linesOf(t, name)
	}
	if len(rows) != 24 || len(files) < 100 {
		t.Fatalf("got %d tables, %d files, want 24, 100 or more", len(rows), len(files))
	}
	return files, rows
}

func linesOf(t *testing.T, name string) (n int64) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		n++
	}
	return n
}

// writeFiles writes files below a directory.
func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// rescueOf rescues the roots, and checks the laws of a report: the status is 0 exactly if everything is complete, each
// output has as many rows as reported, and every file of the roots is listed.
func rescueOf(t *testing.T, out string, roots ...string) (r rescued, status int) {
	t.Helper()
	return rescueInto(t, roots, out)
}

// rescueInto is rescueOf with flags.
func rescueInto(t *testing.T, roots []string, out string, flags ...string) (r rescued, status int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(context.Background(), slices.Concat([]string{"rescue"}, roots, []string{"-o", out}, flags),
		strings.NewReader(""), &stdout, &stderr)
	b, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatalf("status %d, %v: %s", status, err, &stderr)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if r.Whole != (status == cli.StatusFine) || !r.Whole && status != cli.StatusDamage {
		t.Errorf("got status %d, whole %v: %s", status, r.Whole, &stdout)
	}
	for _, x := range r.Tables {
		if r.Whole && !x.Whole {
			t.Errorf("the report is whole, but table %s is not: %v", x.Table, x.Why)
		}
		if x.Output == "" {
			if x.Whole || x.Rows != nil {
				t.Errorf("%s has no output: %+v", x.Table, x)
			}
			continue
		}
		var count bytes.Buffer
		run(context.Background(), []string{"count", filepath.Join(out, x.Output)}, strings.NewReader(""), &count,
			io.Discard)
		if want, _ := json.Marshal(x.Rows); strings.TrimSpace(count.String()) != string(want) {
			t.Errorf("%s: got %s rows in the output, want %s as reported", x.Table, &count, want)
		}
	}
	files := 0
	for _, root := range roots {
		filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files++
			}
			return nil
		})
	}
	if len(r.Sources) != files || files > 0 && len(r.Sources[0].Checksum) != 32 {
		t.Errorf("got %d sources, want %d with checksums", len(r.Sources), files)
	}
	text, err := os.ReadFile(filepath.Join(out, "report.txt"))
	for _, root := range roots { // so that it can be copied
		if !strings.Contains(string(text), " "+root+"\n") {
			t.Errorf("%v: the report does not have %s whole: %s", err, root, text)
		}
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil || !bytes.Contains(page, []byte("</html>")) || bytes.Contains(page, []byte("http")) {
		t.Errorf("HTML page: got %v, %.200s, want a complete page without links", err, page)
	}
	return r, status
}

// TestRescue rescues a dead cluster, and then the cluster with missing parts: undamaged tables have the rows that the
// client had read, damaged tables are not called whole, and the status is 0 only if every table has an output.
func TestRescue(t *testing.T) {
	files, rows := deadCluster(t)
	t.Chdir(t.TempDir())
	writeFiles(t, "all", files)
	whole, status := rescueOf(t, "whole", "all")
	if status != 0 || len(whole.Tables) != len(rows) {
		t.Fatalf("got status %d, %d tables, want 0, %d", status, len(whole.Tables), len(rows))
	}
	sums := map[string]string{}
	for _, x := range whole.Tables {
		sums[x.Table] = x.Back.Checksum
		if *x.Rows != rows[x.Table] || *x.Lost != 0 || !x.Exact || x.Back.Verdict != "equal" {
			t.Errorf("%s: got %d rows, want %d: %+v", x.Table, *x.Rows, rows[x.Table], x)
		}
		if want := map[bool]int64{true: 125}[x.Table == "d_wal"]; x.Replayed != want {
			t.Errorf("%s: got %d operations replayed, want %d", x.Table, x.Replayed, want)
		}
	}
	const wal = "18d66edd19a44014af951255f9b88f56" // the tablet of d_wal
	part := tabletOf(t, "all#part")
	without := func(what ...string) func(map[string][]byte) {
		return func(m map[string][]byte) {
			n := len(m)
			maps.DeleteFunc(m, func(name string, _ []byte) bool {
				return slices.ContainsFunc(what, func(w string) bool { return strings.Contains(name, w) })
			})
			if len(m) == n {
				t.Errorf("%v: no file removed", what)
			}
		}
	}
	for _, c := range []struct {
		name   string
		damage func(map[string][]byte)
		tables map[string]string // undamaged tables: the name in the report to the original name
		status int               // -1: any
		want   string            // in the report
	}{
		{"superblock", without("tserver/wal/tablet-meta/" + wal), map[string]string{"d_wal": "d_wal"}, 3, wal},
		{"superblock, no master", without("tserver/wal/tablet-meta/"+wal, "master/"),
			map[string]string{wal: "d_wal"}, 3, wal},
		{"superblock of one of four", without("tserver/wal/tablet-meta/" + part),
			map[string]string{"part": "part"}, 3, part},
		{"log", without("tserver/wal/wals/" + wal), nil, 3, "kudu.wal.deleted"},
		{"all but blocks", without("tserver/wal/tablet-meta/"+wal, "wals/"+wal, "consensus-meta/"+wal),
			nil, 3, "unclaimed"},
		{"all but blocks, no master", without("tserver/wal/tablet-meta/"+wal, "wals/"+wal, "consensus-meta/"+wal,
			"master/"), nil, 3, "unclaimed"},
		{"a vote without a tablet", func(m map[string][]byte) {
			m["tserver/wal/consensus-meta/00112233445566778899aabbccddeeff"] = m["tserver/wal/consensus-meta/"+wal]
		}, map[string]string{"d_wal": "d_wal"}, 3, "00112233445566778899aabbccddeeff"},
		{"the tablet server", without("tserver/"), nil, 3, "d_major"},
		{"twin", twin(func(map[string][]byte) {}), map[string]string{"d_wal": "d_wal", "part": "part"}, 0, ""},
		{"blocks of a twin", twin(without("twin/data/data/42/34/22/00727916772720")),
			map[string]string{"d_wal": "d_wal", "part": "part", "matrix": "matrix"}, -1, ""},
		{"log of a twin", twin(without("twin/wal/wals/" + wal)), map[string]string{"d_wal": "d_wal"}, -1, ""},
	} {
		if testing.Short() && c.name != "superblock" && c.name != "twin" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			damaged := maps.Clone(files)
			c.damage(damaged)
			writeFiles(t, "in", damaged)
			r, status := rescueOf(t, "out", "in")
			if status != c.status && c.status >= 0 {
				t.Errorf("got status %d, want %d", status, c.status)
			}
			b, _ := os.ReadFile("out/report.json")
			if !bytes.Contains(b, []byte(c.want)) {
				t.Errorf("got a report without %s", c.want)
			}
			seen := map[string]bool{}
			for _, x := range r.Tables {
				seen[x.Table] = x.Output != ""
				if was := c.tables[x.Table]; was != "" && x.Back.Checksum != sums[was] {
					t.Errorf("%s: got %d rows with a checksum different from before: %v", x.Table, *x.Rows, x.Why)
				}
				if n, ok := rows[x.Table]; ok && x.Whole && *x.Rows != n {
					t.Errorf("%s: got %d rows in a table called whole, want %d", x.Table, *x.Rows, n)
				}
			}
			for name := range c.tables {
				if !seen[name] {
					t.Errorf("got no output of %s", name)
				}
			}
		})
	}
}

// twin adds a copy of the tablet server, and then harms the files.
func twin(damage func(map[string][]byte)) func(map[string][]byte) {
	return func(m map[string][]byte) {
		for name, b := range maps.Clone(m) {
			if rest, ok := strings.CutPrefix(name, "tserver/"); ok {
				m["twin/"+rest] = b
			}
		}
		damage(m)
	}
}

// tabletOf returns the second of the four tablets of a table.
func tabletOf(t *testing.T, table string) string {
	t.Helper()
	var out bytes.Buffer
	run(context.Background(), []string{"census", table, "-f", "json"}, strings.NewReader(""), &out, io.Discard)
	var tables []struct{ Tablets []struct{ Tablet string } }
	if err := json.Unmarshal(out.Bytes(), &tables); err != nil || len(tables) != 1 || len(tables[0].Tablets) != 4 {
		t.Fatalf("%v: %s", err, &out)
	}
	return tables[0].Tablets[1].Tablet
}

// TestRescueAddsUp harms one block at a time: if the report calls the loss exact, the rows written and those lost add
// up to the original rows.
func TestRescueAddsUp(t *testing.T) {
	files, rows := deadCluster(t)
	var blocks []string
	for name, b := range files {
		if strings.HasPrefix(name, "tserver/data/data/") && len(b) > 900 && filepath.Base(name) > "0072791677271000" {
			blocks = append(blocks, name)
		}
	}
	slices.Sort(blocks)
	t.Chdir(t.TempDir())
	exact, lost := 0, int64(0)
	for i := range 6 {
		if testing.Short() && i > 1 {
			break
		}
		name := blocks[(i*len(blocks))/6]
		damaged := maps.Clone(files)
		if i%3 == 2 {
			delete(damaged, name)
		} else {
			b := bytes.Clone(files[name])
			for k := range 16 {
				b[len(b)/3+k] ^= 0x55
			}
			damaged[name] = b
		}
		in, out := "in"+name[len(name)-4:], "out"+name[len(name)-4:]
		writeFiles(t, in, damaged)
		r, status := rescueOf(t, out, in)
		if status == cli.StatusFine {
			t.Errorf("%s damaged: got status 0, want %d", name, cli.StatusDamage)
		}
		for _, x := range r.Tables {
			if x.Rows == nil {
				t.Errorf("%s, %s damaged: %v", x.Table, name, x.Why)
				continue
			}
			was := rows[x.Table]
			if *x.Rows > was || x.Exact && *x.Rows+*x.Lost < was || x.Whole && *x.Rows != was {
				t.Errorf("%s, %s damaged: got %d rows and %d lost, want %d in all: %v", x.Table, name, *x.Rows, *x.Lost,
					was, x.Why)
			}
			if x.Exact && *x.Lost > 0 {
				exact++
			}
			lost += *x.Lost
		}
		os.RemoveAll(in)
		os.RemoveAll(out)
	}
	if exact == 0 || lost == 0 {
		t.Errorf("got %d tables with exact losses, %d rows lost, want some", exact, lost)
	}
}

// TestRescueInPieces rescues a cluster with damaged blocks as one file per table, and as several: the rows, their
// checksum and the losses are the same.
func TestRescueInPieces(t *testing.T) {
	var files map[string][]byte
	below, damaged, size, least := "tserver/data/data/", 14, "100KB", 2
	if testing.Short() {
		below, damaged, size, least = "data/data/", 3, "1KB", 1
		files = bytesBelow(t, "../../format/kudu/testdata/file")
	} else {
		files, _ = deadCluster(t)
	}
	t.Chdir(t.TempDir())
	var blocks []string
	for name, b := range files {
		if strings.HasPrefix(name, below) && len(b) > 900 {
			blocks = append(blocks, name)
		}
	}
	slices.Sort(blocks)
	for i := range damaged {
		name := blocks[(i*len(blocks)+damaged/2)/damaged]
		files[name] = bytes.Clone(files[name])
		files[name][len(files[name])/3] ^= 0x55
	}
	writeFiles(t, "in", files)
	one, _ := rescueInto(t, []string{"in"}, "one")
	several, _ := rescueInto(t, []string{"in"}, "several", "--file-size", size)
	if len(one.Tables) != len(several.Tables) {
		t.Fatalf("got %d tables in pieces, want %d", len(several.Tables), len(one.Tables))
	}
	lost := 0
	for i, want := range one.Tables {
		got := several.Tables[i]
		if got.Table != want.Table || *got.Rows != *want.Rows || *got.Lost != *want.Lost || got.Exact != want.Exact ||
			got.Whole != want.Whole || got.Back.Checksum != want.Back.Checksum || got.Back.Verdict != "equal" {
			t.Errorf("%s: got %d rows, %d lost, %+v in pieces, want %d, %d, %+v", want.Table, *got.Rows, *got.Lost, got,
				*want.Rows, *want.Lost, want)
		}
		if *want.Lost > 0 {
			lost++
		}
	}
	if lost < least {
		t.Errorf("got %d tables with losses, want %d or more: this proves nothing", lost, least)
	}
}

// bytesBelow reads the files below a directory.
func bytesBelow(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	if err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, name)
		if err == nil {
			files[filepath.ToSlash(below)], err = os.ReadFile(name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRescuedAgain: a run that goes on with a finished one reports the same, whatever was lost, with the same status.
func TestRescuedAgain(t *testing.T) {
	files := bytesBelow(t, "../../format/kudu/testdata/file")
	t.Chdir(t.TempDir())
	var blocks []string
	for name, b := range files {
		if strings.HasPrefix(name, "data/data/") && len(b) > 900 {
			blocks = append(blocks, name)
		}
	}
	slices.Sort(blocks)
	for i := range 3 {
		name := blocks[(i*len(blocks)+1)/3]
		files[name] = bytes.Clone(files[name])
		files[name][len(files[name])/3] ^= 0x55
	}
	writeFiles(t, "in", files)
	report := func(out string) string {
		doc := map[string]any{}
		b, err := os.ReadFile(out + "/report.json")
		if err == nil {
			err = json.Unmarshal(b, &doc)
		}
		if err != nil {
			t.Fatal(err)
		}
		delete(doc, "seconds")
		delete(doc, "began")
		b, _ = json.MarshalIndent(doc, "", " ")
		return string(b)
	}
	for _, flags := range [][]string{{}, {"--file-size", "1KB"}, {"--to", "kudu-fs"}, {"--to", "jsonl"}} {
		out := "out" + strings.Join(flags, "")
		_, first := rescueInto(t, []string{"in"}, out, flags...)
		want := report(out)
		_, second := rescueInto(t, []string{"in"}, out, append(flags, "--resume")...)
		if got := report(out); first != cli.StatusDamage || second != first || got != want {
			t.Errorf("%v: got status %d, then %d; the reports differ: %s", flags, first, second,
				firstDifference(got, want))
		}
		if !strings.Contains(want, `"findings": [`) {
			t.Errorf("%v: no findings: this proves nothing", flags)
		}
	}
}
