package redfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
)

// TestRowGroupsVanish: a flipped bit of a field number turns the list of row groups into an unknown field. The number
// of rows reveals it: reading is an error, and recovery walks the file without that metadata.
func TestRowGroupsVanish(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(golden, "red1a/a_plain.red"))
	if err != nil {
		t.Fatal(err)
	}
	b[265] ^= 0x40 // the head of row_groups, field 3, becomes that of field 7
	want := expected(t, filepath.Join(golden, "red1a/a_plain.expect.jsonl"))
	checkDisagrees(t, b, want, true)
}

// TestNumberOfRows: if the file's number of rows differs from that of its row groups, reading is an error, and recovery
// loses none of the existing rows.
func TestNumberOfRows(t *testing.T) {
	tried := 0
	for _, cf := range corpusFiles(t, golden) {
		b, err := os.ReadFile(filepath.Join(golden, cf.File))
		if err != nil {
			t.Fatal(err)
		}
		want := expected(t, filepath.Join(golden, cf.Expect))
		if len(want) == 0 {
			continue
		}
		t.Run(cf.File, func(t *testing.T) {
			nodes, err := describeAll(target(b))
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(nodes, func(n region.Node) bool { return strings.HasSuffix(n.Name, "num_rows") })
			at := nodes[i].At
			b[at.End()-1] ^= 4
			checkDisagrees(t, b, want, strings.HasPrefix(cf.File, "red1a/"))
		})
		tried++
	}
	if tried < 8 {
		t.Errorf("%d files were tried", tried)
	}
}

// checkDisagrees compares the rows read and recovered from b with the rows that were written.
func checkDisagrees(t *testing.T, b []byte, want []string, dense bool) {
	t.Helper()
	tree := store.NewMemory(map[string][]byte{"f.red": b})
	tg := format.Target{Tree: tree, Name: "f.red"}
	reported := slices.ContainsFunc(findings(tg), func(f region.Finding) bool { return f.Severity == region.Error })
	if !reported {
		t.Error("verify reports nothing")
	}
	if _, errs := content(tg); !slices.ContainsFunc(errs,
		func(err error) bool { return errors.Is(err, fault.Corrupt) }) {
		t.Errorf("reading: %v", errs)
	}
	r, found, err := redfile.Format.Recover(ctx, tg, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !slices.ContainsFunc(found, func(f region.Finding) bool {
		return (f.Code == "redfile.rows" || f.Code == "redfile.footer.damaged") && f.Severity == region.Error
	}) {
		t.Errorf("recovery reports %+v", found)
	}
	if got := rowsOf(t, r, tree, dense); !slices.Equal(got, want) {
		t.Errorf("%d rows are recovered, %d were written", len(got), len(want))
	}
}

// TestRowGroupOvercounts: a flipped bit makes a row group's number of rows 2⁵⁷ or more. The columns agree with the
// file's number of rows: recovery returns every row.
func TestRowGroupOvercounts(t *testing.T) {
	b := writeSample(t, 150, map[string]string{"row-group-rows": "50", "protocol": "binary", "crc": "false"})
	tg := target(b)
	r, err := redfile.Format.Open(ctx, tg, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := rowsOf(t, r, tg.Tree, true)
	r.Close()
	rows := []byte{10, 0, 3, 0, 0, 0, 0, 0, 0, 0, 50} // field 3 of a row group, an i64
	at := bytes.LastIndex(b, rows)
	if at < 0 || len(want) != 150 {
		t.Fatalf("%d rows; a row group's number is at %d", len(want), at)
	}
	b[at+3] |= 2
	checkDisagrees(t, b, want, true)
}
