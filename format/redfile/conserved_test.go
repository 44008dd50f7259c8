package redfile_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
)

// TestMovedChunksAddUp: bytes are removed from a real file of generation A, or repeated in it, at any place: as many as
// a page has, a column's metadata, a chunk, a row group, or any other number. Only the file's metadata says where the
// chunks are, and they are elsewhere. The rows that come out and those reported as lost are as many as there were, and
// each that comes out was there, in its order. With the metadata cut off as well, still no more are reported.
func TestMovedChunksAddUp(t *testing.T) {
	const rows = 300
	whole, err := os.ReadFile("../../corpus/redfile/red1a/a_optional_pages.red")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../corpus/redfile/red1a/a_optional_pages.expect.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	step, tried, exactly, given := 23, 0, 0, 0
	if testing.Short() {
		step = 167
	}
	for at := 4; at < len(whole); at += step {
		for _, n := range []int{-1, -23, -25, -28, -153, -182, -505, -606, -1651, 1, 25, 153, 505, 606, 1651} {
			bad := movedBytes(whole, at, n)
			if bad == nil {
				continue
			}
			got, lost, exact, err := accountsOf(bad)
			if err != nil {
				t.Errorf("%d bytes at %d: %v", n, at, err)
				continue
			}
			tried++
			sum := int64(len(got)) + lost
			if sum > rows || exact && sum < rows {
				t.Errorf("%d bytes at %d: %d rows came out, %d are reported as lost", n, at, len(got), lost)
			}
			if exact {
				exactly++
			}
			given += len(got)
			if strange := notIn(want, got); strange != "" {
				t.Errorf("%d bytes at %d: a row that was not there: %s", n, at, strange)
			}
			if n > 0 {
				continue
			}
			got, lost, _, err = accountsOf(bad[:len(bad)-20])
			if sum := int64(len(got)) + lost; err == nil && sum > rows {
				t.Errorf("%d bytes at %d, without the end: %d rows came out, %d are reported as lost", n, at, len(got),
					lost)
			}
		}
	}
	if exactly < tried*9/10 || given < tried*rows/2 {
		t.Errorf("of %d changes, the rows of %d are all accounted for, and %d came out", tried, exactly, given)
	}
}

// TestMovedChunksBehindBlocks: a file of generation A by our writer has a sync block between two row groups. If bytes
// before one are removed or repeated, the row groups behind it are read, and the rows of all are accounted for.
func TestMovedChunksBehindBlocks(t *testing.T) {
	const rows, groups = 150, 3
	whole := writeSample(t, rows, map[string]string{"generation": "A", "compression": "none", "page-size": "300",
		"row-group-rows": "50"})
	step, tried, exactly := 7, 0, 0
	if testing.Short() {
		step = 61
	}
	for at := 300; at < len(whole)/groups-250; at += step {
		for _, n := range []int{-90, -7, -1, 1, 8, 90} {
			bad := movedBytes(whole, at, n)
			tried++
			if got, _ := rowsLeft(t, bad, stoa.SkipRows, true); got < rows/groups*(groups-1) {
				t.Errorf("%d bytes at %d: %d rows came out", n, at, got)
			}
			got, lost, exact, err := accountsOf(bad)
			if sum := int64(len(got)) + lost; err != nil || sum > rows || exact && sum < rows {
				t.Errorf("%d bytes at %d: %d rows came out, %d are reported as lost, %v", n, at, len(got), lost, err)
			}
			if exact {
				exactly++
			}
		}
	}
	if exactly < tried*9/10 {
		t.Errorf("of %d changes, the rows of %d are all accounted for", tried, exactly)
	}
}

// TestZeroedCopies: all metadata of columns after pages is zeroed in a file of generation E, whose own metadata
// is whole. That is an error for verify at every depth, and all rows are accounted for.
func TestZeroedCopies(t *testing.T) {
	const rows = 150
	for _, crc := range []string{"true", "false"} {
		data := writeSample(t, rows, map[string]string{"row-group-rows": "50", "crc": crc})
		metas := columnMetadata(t, data)
		for _, at := range metas {
			clear(data[at.Off:at.End()])
		}
		for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
			found := 0
			for f := range redfile.Format.Verify(ctx, target(data), format.OpenOptions{Depth: depth}) {
				if f.Severity == region.Error {
					found++
				}
			}
			if found == 0 {
				t.Errorf("crc=%s: verify of depth %s has no error", crc, depth)
			}
		}
		got, lost, exact, err := accountsOf(data)
		if err != nil || !exact || int64(len(got))+lost != rows {
			t.Errorf("crc=%s: %d rows came out, %d are reported as lost, %t, %v", crc, len(got), lost, exact, err)
		}
	}
}

// notIn returns the first row of got that is not in want, after the one before it; "" if there is none.
func notIn(want, got []string) string {
	k := 0
	for _, row := range got {
		for k < len(want) && want[k] != row {
			k++
		}
		if k++; k > len(want) {
			return row
		}
	}
	return ""
}

// accountsOf recovers a file and returns its rows as JSON, how many are reported as lost, and whether these are all.
func accountsOf(file []byte) (rows []string, lost int64, exact bool, err error) {
	tab, err := stoa.Open(ctx, "f.red", stoa.OpenOptions{Tree: target(file).Tree, Recover: true})
	if err != nil {
		return nil, 0, false, err
	}
	defer tab.Close()
	var losses []region.Loss
	spec := stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { losses = append(losses, l) }}
	for b, err := range tab.Scan(ctx, spec) {
		if err != nil {
			return nil, 0, false, err
		}
		for i := range int(b.NumRows()) {
			row := map[string]any{}
			for k, c := range b.Columns() {
				row[b.ColumnName(k)] = c.GetOneForMarshal(i)
				if texts, ok := c.(*array.Binary); ok && c.IsValid(i) {
					row[b.ColumnName(k)] = string(texts.Value(i))
				}
			}
			text, err := json.Marshal(row)
			if err != nil {
				return nil, 0, false, err
			}
			rows = append(rows, string(text))
		}
	}
	a, err := tab.Account(ctx, stoa.SkipRows, int64(len(rows)), losses)
	return rows, a.Lost, a.Exact, err
}
