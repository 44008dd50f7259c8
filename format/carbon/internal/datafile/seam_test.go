package datafile

import (
	"errors"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// TestSeams1: the pages of a file of format 1 fill it up to the footer; a changed length or offset, or a page that the
// footer does not name, leaves a gap or an overlap.
func TestSeams1(t *testing.T) {
	whole := func() *DataFile {
		f := &DataFile{Version: 1, FootAt: 60}
		f.Footer.Blocklet = []layout.BlockletInfo{
			{Chunks: []layout.DataChunk{{DataAt: 0, DataLen: 10, RowidAt: 15, RowidLen: 5}, {DataAt: 10, DataLen: 5}}},
			{Chunks: []layout.DataChunk{{DataAt: 20, DataLen: 10, RleAt: 50, RleLen: 10}, {DataAt: 30, DataLen: 20}}}}
		return f
	}
	if err := whole().checkSeams(); err != nil {
		t.Fatal(err)
	}
	for what, harm := range map[string]func(*DataFile, []layout.DataChunk){
		"a length":     func(_ *DataFile, c []layout.DataChunk) { c[1].DataLen = 4 },
		"a longer one": func(_ *DataFile, c []layout.DataChunk) { c[1].DataLen = 6 },
		"an offset":    func(_ *DataFile, c []layout.DataChunk) { c[0].DataAt = 1 },
		"no row ids":   func(_ *DataFile, c []layout.DataChunk) { c[0].RowidLen = 0 },
		"no runs":      func(f *DataFile, _ []layout.DataChunk) { f.Footer.Blocklet[1].Chunks[0].RleLen = 0 },
		"no blocklet": func(f *DataFile, _ []layout.DataChunk) {
			f.Footer.Blocklet = slices.Delete(f.Footer.Blocklet, 0, 1)
		},
		"another footer": func(f *DataFile, _ []layout.DataChunk) { f.FootAt = 61 },
	} {
		f := whole()
		harm(f, f.Footer.Blocklet[0].Chunks)
		if err := f.checkSeams(); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: expected damage, found %v", what, err)
		}
	}
}
