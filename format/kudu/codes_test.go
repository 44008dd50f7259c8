package kudu_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
	"stoa/store/faulty"
)

// TestCodesOfDirectories damages directories by hand: the finding has the expected code, severity and file.
func TestCodesOfDirectories(t *testing.T) {
	const (
		super     = "wal/tablet-meta/70fc465b9c534a739769e6e74c851895"
		tombstone = "wal/tablet-meta/a31d08da6c1a4b9ebeb3bd56fd002961"
		box       = "data/data/04d0e114fdd1454382cab9eac6e5cd4a"
		other     = "data/data/ffd0e114fdd1454382cab9eac6e5cd4a"
	)
	for _, x := range []struct {
		code, dir, object string
		sev               region.Severity
		damage            func(files map[string][]byte)
	}{
		{"kudu.tablet.tombstone", "testdata/log", tombstone, region.Note, func(map[string][]byte) {}},
		{"kudu.tablet.unfinished", "testdata/file", super, region.Warning,
			func(f map[string][]byte) { f[super] = kudu.WithState(t, f[super], kudu.TabletCopying) }},
		{"kudu.block.twice", "testdata/log", other + ".data", region.Warning, func(f map[string][]byte) {
			f[other+".data"], f[other+".metadata"] = f[box+".data"], f[box+".metadata"]
		}},
		{"kudu.container.damaged", "testdata/log", box + ".metadata", region.Error, func(f map[string][]byte) {
			f[box+".metadata"] = bytes.Clone(f[box+".metadata"])
			f[box+".metadata"][0] ^= 1 // its magic
		}},
	} {
		files := load(t, x.dir)
		x.damage(files)
		bad, notes := findings(t, store.NewMemory(files), "", "")
		hit, all := 0, ""
		for _, got := range append(bad, notes...) {
			if all += fmt.Sprintf("\n\t%+v", got); got.Code == x.code && got.At.Object == x.object &&
				got.Severity == x.sev {
				hit++
			}
		}
		if hit == 0 {
			t.Errorf("%s of %s is not among%s", x.code, x.object, all)
		}
	}
}

// A block that fits no rowset is left out, and reported with its file.
func TestCodeOfUnusedBlocks(t *testing.T) {
	files := load(t, "testdata/file")
	_, tablets := layout(t, store.NewMemory(files))
	delete(files, tablets[0].Object)
	column := blockFile(t, files, "72791677272331")
	again := strings.TrimSuffix(column, "331") + "350"
	files[again], files["s.json"] = files[column], []byte(autoincSchema)
	tb, err := stoa.Open(t.Context(), "",
		stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: store.NewMemory(files),
			Opts: map[string]string{"schema": "s.json"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	if rows := rowsOf(t, tb, stoa.ScanSpec{}); len(rows) != 300 {
		t.Errorf("%d rows", len(rows))
	}
	left := 0
	for _, x := range tb.Findings() {
		if x.Code == "kudu.carve.left" && x.At.Object == again && x.Severity == region.Error {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%+v", tb.Findings())
	}
}

// I/O errors are reported with a code of their own.
func TestCodeOfIOErrors(t *testing.T) {
	files := load(t, "testdata/file")
	reported := map[string]bool{}
	for k := int64(1); k < 40; k++ {
		tree := &faulty.Tree{Tree: store.NewMemory(maps.Clone(files)), At: k, Mode: faulty.Fail}
		for x := range kudu.Format.Verify(t.Context(), format.Target{Tree: tree}, format.OpenOptions{}) {
			if reported[x.Code] = true; x.Code == "kudu.read" && (x.Severity != region.Error || x.Message == "") {
				t.Errorf("%+v", x)
			}
		}
	}
	if !reported["kudu.read"] {
		t.Errorf("%v", reported)
	}
}
