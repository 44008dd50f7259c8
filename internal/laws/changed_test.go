package laws_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// changing is a place with the files that change while it is read.
type changing struct {
	place string
	files []string
	opts  map[string]string
}

// TestChangedWhileRead: a file that changes during a scan, of a table or of a split, is reported at the end: in every
// format, for single files and directories. While a server is known to run (option live), files grow, which is not an
// error.
func TestChangedWhileRead(t *testing.T) {
	formats := stoa.Formats
	dir := t.TempDir()
	for name, from := range map[string]string{"carbon": "corpus/carbon/2.3.0/managed",
		"redfile": "corpus/redfile/red1", "kudu": "format/kudu/testdata/file", "trevni": "corpus/trevni/v1.12.2"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	writeSet(t, dir+"/set/", "cfile")
	all := []changing{
		{dir + "/carbon#managed1", filesBelow(t, dir+"/carbon/managed1/Fact", "*.carbondata"), nil},
		{dir + "/redfile/flat_pages.red", filesBelow(t, dir+"/redfile", "flat_pages.red"), nil},
		{dir + "/trevni/" + trevniFile(t, "v1.12.2"), filesBelow(t, dir+"/trevni", trevniFile(t, "v1.12.2")), nil},
		{dir + "/set", filesBelow(t, dir+"/set", "n.cfile"), nil},
		{dir + "/kudu#autoinc", filesBelow(t, dir+"/kudu/data/data", "[0-9a-f]*"), nil},
		{dir + "/kudu#autoinc", filesBelow(t, dir+"/kudu/data/data", "[0-9a-f]*"), map[string]string{"live": "true"}},
	}
	for _, p := range splitPlaces(t)[:4] { // single files
		all = append(all, changing{p, []string{p}, nil})
	}
	for _, c := range all {
		for _, touch := range []bool{false, true} {
			for _, split := range []bool{false, true} {
				batches, err := c.read(t, formats, touch, split)
				reported := errors.Is(err, store.ErrChanged) && errors.Is(err, fault.Invalid)
				if batches == 0 || reported != (touch && c.opts == nil) || err != nil && !reported {
					t.Errorf("%s %v, changed %v, split %v: %d batches, %v", c.place, c.opts, touch, split, batches, err)
				}
			}
		}
	}
}

// filesBelow returns the files below a directory whose names match pattern.
func filesBelow(t *testing.T, dir, pattern string) (out []string) {
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if ok, _ := filepath.Match(pattern, d.Name()); err == nil && ok && d.Type().IsRegular() {
			out = append(out, name)
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%s holds no %s: %v", dir, pattern, err)
	}
	return out
}

// read scans the place, or its first split, and changes the files after the first batch.
func (c changing) read(t *testing.T, formats []format.Format, touch, split bool) (batches int, last error) {
	ctx := context.Background()
	table, err := stoa.Open(ctx, c.place, stoa.OpenOptions{Formats: formats, Opts: c.opts})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	rows := table.Scan(ctx, stoa.ScanSpec{Batch: 100})
	if split {
		for s, err := range table.Plan(ctx, stoa.ScanSpec{}, 1<<30) {
			if err != nil {
				t.Fatal(err)
			}
			part, err := stoa.OpenSplit(ctx, s, stoa.OpenOptions{Formats: formats})
			if err != nil {
				t.Fatal(c.place, err)
			}
			defer part.Close()
			rows = part.Scan(ctx, stoa.ScanSpec{Batch: 100})
			break
		}
	}
	for _, err := range rows {
		if err != nil {
			return batches, err
		}
		if batches++; batches == 1 && touch {
			c.touch(t)
		}
	}
	return batches, nil
}

// touch makes the files look as if they had been rewritten, a minute later each time.
func (c changing) touch(t *testing.T) {
	for _, f := range c.files {
		info, err := os.Stat(f)
		if err == nil {
			err = os.Chtimes(f, time.Time{}, info.ModTime().Add(time.Minute))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
