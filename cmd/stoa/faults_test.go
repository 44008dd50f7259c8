package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/region"
	"stoa/store"
	"stoa/store/faulty"
)

// faultSources are a file or directory of every format that can be read.
func faultSources(t *testing.T) []faultSource {
	list := []faultSource{
		// protobuf containers of version 1 have few checksums
		{"kudu", "../../format/kudu/testdata/file#autoinc", false},
		{"kudu-wal", "../../format/kudu/testdata/wal/wals/c3f631e19af44f00bb1082d149777f73/wal-000000001", true},
		{"cfile", "../../corpus/kudu/1.18.1/key_int32/k.ck.cfile", true},
		{"carbon", "../../corpus/carbon/2.3.0/managed/managed_del", false},
		{"redfile", "../../corpus/redfile/red1/flat_pages.red", false},
		{"trevni", "../../corpus/trevni/dialects/wiki_dremel.trv", false},
		{"trevni-avro", "../../corpus/trevni/v1.12.2/avro_primitives.trv", false},
		{"carbon of format 1, with dictionaries", "../../corpus/carbon/1.0.0/v1_complex", false},
		{"carbon of format 2, with dictionaries",
			"../../corpus/carbon/1.0.0/v2_b2000/Fact/Part0/Segment_0/part-0-0-0-1480000000000.carbondata", false},
		{"dictionary", "../../corpus/carbon/1.0.0/v1_complex/Metadata/12345678-0000-4000-8000-000000000007.dict",
			false},
	}
	dir := t.TempDir()
	write := func(out string, opts ...string) {
		args := append([]string{"convert", "../../corpus/carbon/2.3.0/managed/managed_gsort", "-q", "-o", out}, opts...)
		if st := run(context.Background(), args, strings.NewReader(""), io.Discard, os.Stderr); st != 0 {
			t.Fatal(out)
		}
	}
	for _, d := range []struct {
		faultSource
		opts []string
	}{
		{faultSource{"cfile directory", "c/", true}, []string{"--to=cfile"}},
		{faultSource{"redfile split", "r/", false},
			[]string{"--to=redfile", "--opt=split=row-group", "--opt=row-group-rows=100"}},
		{faultSource{"arrow stream", "t.arrows", false}, []string{"--opt=stream=true"}},
		{faultSource{"csv.gz", "t.csv.gz", true}, nil},
	} {
		d.uri = filepath.Join(dir, d.uri) + d.uri[len(strings.TrimSuffix(d.uri, "/")):]
		write(d.uri, d.opts...)
		list = append(list, d.faultSource)
	}
	if err := os.Mkdir(filepath.Join(dir, "several"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.parquet", "b.parquet"} {
		write(filepath.Join(dir, "several", name))
	}
	list = append(list, faultSource{"several files", filepath.Join(dir, "several"), false})
	for _, ext := range []string{"parquet", "arrow", "jsonl", "csv", "tsv"} {
		out := filepath.Join(dir, "t."+ext)
		write(out)
		list = append(list, faultSource{ext, out, false})
	}
	return list
}

type faultSource struct {
	name, uri string
	summed    bool // all data has checksums: wrong bytes must not yield different rows
}

// maxFaults is how many of a source's operations are made to fail; STOA_LONG: all.
func maxFaults() int64 {
	switch {
	case os.Getenv("STOA_LONG") != "":
		return 1 << 40
	case testing.Short():
		return 6
	}
	return 12
}

// TestFaultyReads: whichever operation fails, is short, is slow or returns wrong bytes, opening, scanning, verifying
// and describing report it or yield the right result; a failure is never reported as damage, and nothing hangs.
func TestFaultyReads(t *testing.T) {
	for _, src := range faultSources(t) {
		t.Run(src.name, func(t *testing.T) {
			healthy := &faulty.Tree{Tree: store.Local{}, At: -1}
			want, err := src.rows(context.Background(), healthy)
			if err != nil && src.name != "kudu-wal" {
				t.Fatal(err)
			}
			reported, same := 0, 0
			step := max(1, (healthy.Count()+maxFaults()-1)/maxFaults())
			for _, mode := range []faulty.Mode{faulty.Fail, faulty.Short, faulty.Slow, faulty.Wrong} {
				s := step
				if mode == faulty.Slow { // these take time
					s = max(1, healthy.Count()/4)
				}
				for at := int64(0); at < healthy.Count(); at += s {
					if src.one(t, mode, at, want, src.name == "kudu-wal") {
						reported++
					} else {
						same++
					}
				}
			}
			t.Logf("%d operations; %d faults reported, %d without effect", healthy.Count(), reported, same)
			if reported == 0 {
				t.Error("no fault reported")
			}
		})
	}
}

// one makes one operation misbehave, and returns whether opening or scanning reports an error.
func (src faultSource) one(t *testing.T, mode faulty.Mode, at int64, want []string, noRows bool) bool {
	ctx := context.Background()
	if mode == faulty.Slow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
	}
	began := time.Now()
	tree := &faulty.Tree{Tree: store.Local{}, Mode: mode, At: at}
	got, err := src.rows(ctx, tree)
	what := fmt.Sprintf("%s: operation %d: %s", src.name, at, mode)
	switch {
	case errors.Is(err, fault.Bug):
		t.Errorf("%s: %v", what, err)
	case noRows: // a log has no rows and is not opened
	case err == nil && !slices.Equal(got, want) && (mode != faulty.Wrong || src.summed):
		t.Errorf("%s: got %d rows and no error, want the %d rows or an error", what, len(got), len(want))
	case mode == faulty.Fail && errors.Is(err, fault.Corrupt):
		t.Errorf("%s is reported as damage: %v", what, err)
	case mode == faulty.Slow && err != nil && !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("%s: %v", what, err)
	}
	if d := time.Since(began); mode == faulty.Slow && d > 5*time.Second {
		t.Errorf("%s took %s", what, d)
	}
	src.recovers(t, mode, at, want, noRows)
	// verify and describe do other operations: they must terminate, and report neither a bug nor damage
	if mode != faulty.Slow {
		o := stoa.OpenOptions{Formats: catalogue.Formats(), Tree: &faulty.Tree{Tree: store.Local{}, Mode: mode, At: at}}
		for _, err := range stoa.Verify(ctx, src.uri, o) {
			if errors.Is(err, fault.Bug) {
				t.Errorf("%s: verify: %v", what, err)
			}
		}
		o.Tree = &faulty.Tree{Tree: store.Local{}, Mode: mode, At: at}
		for _, err := range stoa.Describe(ctx, src.uri, stoa.DescribeOptions{OpenOptions: o, Pages: true}) {
			if errors.Is(err, fault.Bug) || mode == faulty.Fail && errors.Is(err, fault.Corrupt) {
				t.Errorf("%s: describe: %v", what, err)
			}
		}
	}
	return err != nil
}

// recovers does what one does for recovery: a failing or slow operation ends it and is not reported as a loss; a short
// or wrong one may be. If rows are missing, a loss or finding is reported.
func (src faultSource) recovers(t *testing.T, mode faulty.Mode, at int64, want []string, noRows bool) {
	if noRows {
		return
	}
	ctx := context.Background()
	if mode == faulty.Slow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
	}
	tree := &faulty.Tree{Tree: store.Local{}, Mode: mode, At: at}
	var lost []error
	rows, reported := 0, false
	tab, err := stoa.Open(ctx, src.uri, stoa.OpenOptions{Formats: catalogue.Formats(), Tree: tree, Recover: true})
	if err == nil {
		defer tab.Close()
		for b, serr := range tab.Scan(ctx,
			stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { lost = append(lost, l.Err) }}) {
			if err = serr; err != nil {
				break
			}
			rows += int(b.NumRows())
		}
		reported = slices.ContainsFunc(tab.Findings(), func(f region.Finding) bool { return f.Severity > region.Note })
	}
	what := fmt.Sprintf("%s: operation %d: %s: recover", src.name, at, mode)
	switch {
	case errors.Is(err, fault.Bug):
		t.Errorf("%s: %v", what, err)
	case (mode == faulty.Fail || mode == faulty.Slow) && (errors.Is(err, fault.Corrupt) || len(lost) > 0):
		t.Errorf("%s: is reported as damage: %v, lost %v", what, err, lost)
	case err == nil && rows < len(want) && len(lost) == 0 && !reported && (mode != faulty.Wrong || src.summed):
		t.Errorf("%s: got %d rows and no loss, want %d rows or a loss", what, rows, len(want))
	}
}

// rows opens the source and returns all rows as lines.
func (src faultSource) rows(ctx context.Context, tree store.Tree) ([]string, error) {
	t, err := stoa.Open(ctx, src.uri, stoa.OpenOptions{Formats: catalogue.Formats(), Tree: tree})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var out []string
	for b, err := range t.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			return out, err
		}
		out = append(out, formattest.Lines(b)...)
	}
	return out, nil
}

// TestFullDisk: whenever the disk is full, the writer of every format returns the error and leaves nothing.
func TestFullDisk(t *testing.T) {
	src, err := stoa.Open(context.Background(), "../../corpus/carbon/2.3.0/managed/managed_gsort", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, f := range catalogue.Formats() {
		if f.Create == nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) { fullDisk(t, src, f) })
	}
}

func fullDisk(t *testing.T, src *stoa.Table, f format.Format) {
	ctx := context.Background()
	opts := map[string]string{}
	uri := "out/"
	if len(f.Extensions) > 0 && f.Name != "cfile" {
		uri = "out" + f.Extensions[0]
	}
	if f.Family == "kudu" {
		opts = map[string]string{"table": "t", "key": "id"}
	}
	write := func(room int64) (left []string, full bool, bytes int64, err error) {
		dir := t.TempDir()
		sink := &faulty.Sink{Sink: store.Local{}.Sink(filepath.Join(dir, uri), nil), Left: room}
		_, err = stoa.Convert(ctx, src, stoa.ScanSpec{}, uri,
			stoa.CreateOptions{Formats: catalogue.Formats(), To: f.Name, Opts: opts, Sink: sink})
		entries, rerr := os.ReadDir(dir)
		if rerr != nil {
			t.Fatal(rerr)
		}
		for _, e := range entries {
			left = append(left, e.Name())
		}
		return left, sink.Full, room - sink.Left, err
	}
	left, _, all, err := write(1 << 40)
	if err != nil || len(left) != 1 {
		t.Fatalf("got %v, %v, want one file", left, err)
	}
	n := int64(12)
	if testing.Short() {
		n = 3
	}
	for i := range n {
		room := all * i / n
		left, full, _, err := write(room)
		if !errors.Is(err, faulty.Err) || !full {
			t.Errorf("room for %d of %d bytes: got %v, want the sink's error", room, all, err)
		}
		if len(left) > 0 {
			t.Errorf("room for %d of %d bytes: got %v left, want nothing", room, all, left)
		}
	}
}

// faultWriters are the writers of all formats, where possible with options that make them use temporary files.
func faultWriters() (list []faultWriter) {
	for _, f := range catalogue.Formats() {
		if f.Create == nil {
			continue
		}
		w := faultWriter{f.Name, f.Name, "out/", map[string]string{}}
		if len(f.Extensions) > 0 && f.Name != "cfile" {
			w.uri = "out" + f.Extensions[0]
		}
		switch f.Name {
		case "kudu-backup", "kudu-fs":
			w.opts = map[string]string{"table": "t", "key": "id"}
		case "redfile":
			w.opts = map[string]string{"memory": "1kB", "page-size": "64"}
			list = append(list, faultWriter{"redfile split", f.Name, "out/",
				map[string]string{"split": "row-group", "row-group-rows": "100"}})
		case "parquet":
			w.opts = map[string]string{"memory": "1kB", "bloom": "id"}
		case "trevni", "trevni-avro":
			w.opts = map[string]string{"block-size": "100"}
		case "carbon":
			w.opts = map[string]string{"sort-columns": "id", "memory": "1kB"}
		case "arrow":
			list = append(list, faultWriter{"arrow stream", f.Name, "out.arrows", map[string]string{"stream": "true"}})
		case "csv":
			list = append(list, faultWriter{"csv.gz", f.Name, "out.csv.gz", nil})
		}
		list = append(list, w)
	}
	return list
}

type faultWriter struct {
	name, format, uri string
	opts              map[string]string
}

// write writes the table to dir through the sink's faults.
func (w faultWriter) write(t *testing.T, src *stoa.Table, dir string, sink *faulty.Sink) error {
	sink.Sink, sink.Left = store.Local{}.Sink(filepath.Join(dir, w.uri), nil), 1<<40
	_, err := stoa.Convert(t.Context(), src, stoa.ScanSpec{Batch: 50}, w.uri,
		stoa.CreateOptions{Formats: catalogue.Formats(), To: w.format, Opts: w.opts, Sink: sink})
	return err
}

// TestFaultyWrites: whichever operation of a sink fails, writes only half, is slow or reads back wrong bytes, the
// writer returns an error and leaves nothing, or writes the right rows.
func TestFaultyWrites(t *testing.T) {
	src, err := stoa.Open(t.Context(), "../../corpus/carbon/2.3.0/managed/managed_gsort", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, w := range faultWriters() {
		t.Run(w.name, func(t *testing.T) {
			healthy, dir := &faulty.Sink{}, t.TempDir()
			if err := w.write(t, src, dir, healthy); err != nil {
				t.Fatal(err)
			}
			want := w.rows(t, dir)
			if len(want) != 500 { // see the manifest
				t.Fatalf("got %d rows, want 500", len(want))
			}
			reported, hits := 0, map[faulty.Mode]int{}
			step := max(1, (healthy.Count()+maxFaults()-1)/maxFaults())
			for _, mode := range []faulty.Mode{faulty.Fail, faulty.Short, faulty.Slow, faulty.Wrong} {
				for at := int64(0); at < healthy.Count(); at += step {
					sink := &faulty.Sink{Ops: true, Mode: mode, At: at, Delay: time.Millisecond}
					dir := t.TempDir()
					err := w.write(t, src, dir, sink)
					what := fmt.Sprintf("operation %d of %d: %s", at, healthy.Count(), mode)
					if !sink.Hit.Load() {
						continue
					}
					hits[mode]++
					left, rerr := os.ReadDir(dir)
					switch {
					case rerr != nil:
						t.Fatal(rerr)
					case err != nil && (mode == faulty.Slow || errors.Is(err, fault.Corrupt) ||
						errors.Is(err, fault.Bug)):
						t.Errorf("%s: %v", what, err)
					case err != nil && len(left) > 0:
						t.Errorf("%s: got %v left, want nothing", what, left)
					case err == nil && mode == faulty.Fail:
						t.Errorf("%s: got no error, want one", what)
					case err == nil && !slices.Equal(w.rows(t, dir), want):
						t.Errorf("%s: got different rows and no error", what)
					}
					if err != nil {
						reported++
					}
				}
			}
			t.Logf("%d operations; hit %v; %d reported", healthy.Count(), hits, reported)
			if hits[faulty.Fail] == 0 || hits[faulty.Short] == 0 || reported == 0 {
				t.Errorf("got %d faults reported, hit %v; want faults of both modes", reported, hits)
			}
			if spills := w.opts["memory"] != ""; spills && healthy.Reads.Load() == 0 {
				t.Error("no temporary file read, want one")
			}
		})
	}
}

// rows are the rows that were written to dir, as lines in order; an error is a line, too.
func (w faultWriter) rows(t *testing.T, dir string) (out []string) {
	t.Helper()
	uris := []string{filepath.Join(dir, w.uri)}
	if w.format == "kudu-backup" {
		uris = nil
		if err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if filepath.Ext(p) == ".parquet" {
				uris = append(uris, p)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, uri := range uris {
		lines, err := (faultSource{uri: uri}).rows(t.Context(), store.Local{})
		if out = append(out, lines...); err != nil {
			out = append(out, err.Error())
		}
	}
	return out
}
