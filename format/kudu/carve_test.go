package kudu_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// autoincSchema is the relevant part of what `stoa schema -f json` prints for table autoinc.
const autoincSchema = `{"fields": [
	{"name": "k", "type": "int32", "nullable": false, "metadata": {"stoa.key": "1"}},
	{"name": "auto_incrementing_id", "type": "int64", "nullable": false, "metadata": {"stoa.type": "int64", "stoa.key":
	"2"}}, {"name": "v", "type": "utf8", "nullable": false}]}`

// TestCarvedBlocks: without the superblock, its blocks are assembled into rowsets with a given schema.
func TestCarvedBlocks(t *testing.T) {
	files := load(t, "testdata/file")
	_, tablets := layout(t, store.NewMemory(files))
	delete(files, tablets[0].Object)
	files["schema.json"] = []byte(autoincSchema)
	tree := store.NewMemory(files)
	tb, err := stoa.Open(context.Background(), "",
		stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: tree,
			Opts: map[string]string{"schema": "schema.json"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	compare(t, rowsOf(t, tb, stoa.ScanSpec{}), expected(t, "testdata", "autoinc", "final"))
	var codes []string
	for _, x := range tb.Findings() {
		codes = append(codes, x.Code)
	}
	// its only delta file is the UNDO file of its rowset, which the latest state does not need
	if !slices.Equal(codes, []string{"kudu.superblock.missing"}) {
		t.Errorf("findings %v", codes)
	}
	_, notes := findings(t, tree, "", "")
	n := 0
	for _, x := range notes {
		if x.Code == "kudu.block.unnamed" {
			n++
		}
	}
	if n != 6 { // three columns, bloom file, ad-hoc index, UNDO
		t.Errorf("%d blocks are listed: %+v", n, notes)
	}
}

// TestVerifyOfCarvedBlocks: the blocks that no superblock names belong to no table, so verifying them reports nothing
// about tables that are here.
func TestVerifyOfCarvedBlocks(t *testing.T) {
	files := load(t, "testdata/log")
	_, tablets := layout(t, store.NewMemory(files))
	here := map[string]bool{}
	for _, tb := range tablets {
		if here[tb.ID] = tb.Table == "ranges"; !here[tb.ID] {
			delete(files, tb.Object)
		}
	}
	about := func(opts map[string]string) (tables, blocks int) {
		for x := range kudu.Format.Verify(t.Context(), format.Target{Tree: store.NewMemory(files)},
			format.OpenOptions{Opts: opts}) {
			if x.Table == "ranges" || here[x.Part] || x.Code == "kudu.tablet.missing" {
				tables++
			}
			if x.Code == "kudu.block.unnamed" {
				blocks++
			}
		}
		return tables, blocks
	}
	tables, blocks := about(nil)
	if tables == 0 || blocks == 0 {
		t.Fatalf("verify reports %d findings about the table, and %d blocks", tables, blocks)
	}
	if more, same := about(map[string]string{"schema": "schema.json"}); more != 0 || same != blocks {
		t.Errorf("with a schema: got %d findings about the table and %d blocks, want 0 and %d", more, same, blocks)
	}
}

// Carved blocks cannot be selected by a table's name or read as they were at a moment, and if several tablets are lost,
// that is an error finding.
func TestCarveIsNoTable(t *testing.T) {
	files := load(t, "testdata/file")
	files["schema.json"] = []byte(autoincSchema)
	open := func(uri string, opts map[string]string) error {
		tb, err := stoa.Open(t.Context(), uri,
			stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: store.NewMemory(files), Opts: opts})
		if err != nil {
			return err
		}
		defer tb.Close()
		if codes(tb.Findings(), region.Error) != "kudu.carve.mixed kudu.superblock.missing" {
			t.Errorf("%s: %+v", uri, tb.Findings())
		}
		return nil
	}
	const lost = "70fc465b9c534a739769e6e74c851895"
	delete(files, "wal/tablet-meta/"+lost)
	files["wal/consensus-meta/"+strings.Repeat("a", 32)] = nil
	if err := open("", map[string]string{"schema": "schema.json"}); err != nil {
		t.Error(err)
	}
	for _, uri := range []string{"#autoinc", "#other", "#" + lost} {
		if err := open(uri, map[string]string{"schema": "schema.json"}); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for k, v := range map[string]string{"tablet": lost, "at": "2026-01-01", "at ": "first"} {
		err := open("", map[string]string{"schema": "schema.json", strings.TrimSpace(k): v})
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%s=%s: %v", k, v, err)
		}
	}
}

// TestCarvingDoesNotGuess: a schema that does not fit yields an error, never the values of other columns.
func TestCarvingDoesNotGuess(t *testing.T) {
	files := load(t, "testdata/file")
	_, tablets := layout(t, store.NewMemory(files))
	delete(files, tablets[0].Object)
	for what, sc := range map[string]string{
		"too few columns": `{"fields": [{"name": "k", "type": "int32", "nullable": false}, {"name": "i", "type": ` +
			`"int64", "nullable": false}]}`,
		"another order": strings.Replace(strings.Replace(strings.Replace(autoincSchema, "int32", "INT", 1),
			"int64", "int32", 2), "INT", "int64", 1),
		"another encoding": strings.Replace(autoincSchema, `"utf8", "nullable": false`,
			`"utf8", "nullable": false, "metadata": {"stoa.encoding": "plain"}`, 1),
		"nulls elsewhere": strings.Replace(autoincSchema, `"utf8", "nullable": false`, `"utf8", "nullable": true`, 1),
	} {
		damaged := maps.Clone(files)
		damaged["s.json"] = []byte(sc)
		_, _, err := readAll(t, store.NewMemory(damaged), "", map[string]string{"schema": "s.json"}, stoa.ScanSpec{})
		if what == "another order" && err == nil {
			continue // each block fits one column only, so the order does not matter
		}
		if !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, sc := range []string{"", "{}", `{"fields": [{"name": "a", "type": "list"}]}`,
		`{"fields": [{"name": "a", "type": "int8", "metadata": {"stoa.column_id": "1"}}, {"name": "b", "type": ` +
			`"int8"}]}`} {
		damaged := maps.Clone(files)
		damaged["s.json"] = []byte(sc)
		if _, _, err := readAll(t, store.NewMemory(damaged), "", map[string]string{"schema": "s.json"},
			stoa.ScanSpec{}); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", sc, err)
		}
	}
}
