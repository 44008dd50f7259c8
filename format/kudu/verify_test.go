package kudu_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// findings returns the findings of verify: errors and warnings, and notes.
func findings(t testing.TB, tree store.Tree, dir, table string) (bad, notes []region.Finding) {
	t.Helper()
	known := map[string]bool{}
	for _, c := range slices.Concat(kudu.Codes, cfile.Codes) {
		known[c.Code] = true
	}
	for x := range kudu.Format.Verify(context.Background(), format.Target{Tree: tree, Name: dir, Table: table},
		format.OpenOptions{}) {
		if !known[x.Code] || x.Message == "" {
			t.Errorf("finding %+v", x)
		}
		if x.Severity == region.Note {
			notes = append(notes, x)
		} else {
			bad = append(bad, x)
		}
	}
	return bad, notes
}

// TestVerifyHealthy: verify has no findings about the real directories, except for missing logs and tablets.
func TestVerifyHealthy(t *testing.T) {
	places := []string{"testdata/file", "testdata/log"}
	if dir := filepath.Join(corpusOr(""), "kudu"); dir != "kudu" {
		places = append(places, filepath.Join(dir, "fs_file"), filepath.Join(dir, "fs_log"))
	}
	for _, place := range places {
		bad, notes := findings(t, store.Local{}, place, "")
		for _, x := range bad {
			// the directories are without logs; of testdata/log tablets were left out
			if x.Code != "kudu.wal.missing" && x.Code != "kudu.tablet.missing" {
				t.Errorf("%s: %+v", place, x)
			}
		}
		t.Log(place, len(bad), len(notes))
	}
}

// The nodes of each file cover all its bytes, without overlaps.
func TestDescribeCoversAll(t *testing.T) {
	places := []string{"testdata/file", "testdata/log"}
	if dir := filepath.Join(corpusOr(""), "kudu"); dir != "kudu" {
		places = append(places, filepath.Join(dir, "fs_log"))
	}
	for _, place := range places {
		cover := map[string]*region.Coverage{}
		nodes := 0
		for n, err := range kudu.Format.Describe(context.Background(),
			format.Target{Tree: store.Local{}, Name: place}, format.DescribeOptions{}) {
			if err != nil {
				t.Fatal(place, err)
			}
			nodes++
			if n.Kind == region.Gap {
				t.Errorf("%s: %+v", place, n)
			}
			if cover[n.At.Object] == nil {
				cover[n.At.Object] = &region.Coverage{}
			}
			cover[n.At.Object].Add(n)
		}
		objects := 0
		err := filepath.WalkDir(place, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(p, ".zst") || strings.HasSuffix(p, ".out") ||
				strings.HasSuffix(p, ".json") || strings.HasSuffix(p, "SUMS") {
				return err
			}
			info, err := d.Info()
			if err != nil || info.Size() == 0 {
				return err
			}
			c := cover[filepath.ToSlash(p)]
			if c == nil {
				t.Errorf("%s is not described", p)
				return nil
			}
			objects++
			gaps, overlaps := c.Check(fault.Span{Object: filepath.ToSlash(p), Len: info.Size()})
			if len(gaps)+len(overlaps) > 0 {
				t.Errorf("%s: gaps %v, overlaps %v", p, gaps, overlaps)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d objects, %d nodes", place, objects, nodes)
		if objects < 10 {
			t.Error("too few")
		}
	}
}

// The description of a single table has no more than its own blocks.
func TestDescribeTable(t *testing.T) {
	n := 0
	for x, err := range kudu.Format.Describe(context.Background(),
		format.Target{Tree: store.Local{}, Name: "testdata/file", Table: "autoinc"},
		format.DescribeOptions{Pages: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(x.At.Object, "instance") {
			t.Errorf("%+v", x)
		}
		n++
	}
	if n < 100 {
		t.Errorf("%d nodes", n)
	}
	for _, err := range kudu.Format.Describe(context.Background(),
		format.Target{Tree: store.Local{}, Name: "testdata/file", Table: "none"}, format.DescribeOptions{}) {
		if !errors.Is(err, fault.Invalid) {
			t.Error(err)
		}
	}
}

// TestVerifyMoment: a moment applies to one table; for a directory with several tables it is refused and not ignored.
func TestVerifyMoment(t *testing.T) {
	tg := format.Target{Tree: store.Local{}, Name: "testdata/log"}
	var classes []error
	for f := range kudu.Format.Verify(t.Context(), tg, format.OpenOptions{Opts: map[string]string{"at": "first"}}) {
		classes = append(classes, f.Class)
	}
	if !slices.Contains(classes, error(fault.Invalid)) {
		t.Errorf("got findings of classes %v, want %v", classes, fault.Invalid)
	}
}
