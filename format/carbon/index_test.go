package carbon_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"stoa"
)

// TestIndexTable: an index file, single or merged, is read as a table of its entries, with the rows and bounds of the
// data.
func TestIndexTable(t *testing.T) {
	place := filepath.Join(golden2, "managed/managed_part/country=c0/y=2019/0_1795249943470.carbonindexmerge")
	_, rows, err := read(t, place, stoa.OpenOptions{}, stoa.ScanSpec{})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	_, data, err := read(t, filepath.Join(golden2,
		"managed/managed_part/country=c0/y=2019/part-0-100100000100001_batchno0-0-0-1795249943470.snappy.carbondata"),
		stoa.OpenOptions{}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	lo, hi := data[0]["name"], data[0]["name"]
	for _, l := range data {
		lo, hi = min(lo, l["name"]), max(hi, l["name"])
	}
	r := rows[0]
	if r["min_name"] != lo && r["min_name"] != `"`+lo+`"` && r["min_name"] != `"'`+lo[1:len(lo)-1]+`'"` {
		t.Errorf("min_name: got %s, want %s", r["min_name"], lo)
	}
	if r["num_rows"] != itoa(len(data)) || r["blocklet"] != "0" {
		t.Errorf("got entry %v for %d rows", r, len(data))
	}
	_, rows, err = read(t, filepath.Join(golden2,
		"v3/lowcard_inv/table/0_batchno0-0-null-1600000000000.carbonindex"), stoa.OpenOptions{},
		stoa.ScanSpec{Columns: []string{"num_rows", "min_id", "max_id"}})
	if err != nil || len(rows) != 1 || rows[0]["num_rows"] != "20000" {
		t.Error(rows, err)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
