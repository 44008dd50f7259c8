package redfile_test

import (
	"errors"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/store"
)

// TestColumnsThatBeginTogether: if the metadata gives two columns the same start, or the same metadata, no value is
// read twice.
func TestColumnsThatBeginTogether(t *testing.T) {
	const first, second = "row_groups[0].columns[0]", "row_groups[0].columns[1]"
	for what, c := range map[string]struct {
		opts map[string]string
		harm func(a *anatomy)
	}{
		"A, pages": {map[string]string{"generation": "A"}, func(a *anatomy) {
			a.exchange(a.at(second, "column_metadata").Off, a.at(second).Off, a.at(first).Off)
		}},
		"A, metadata": {map[string]string{"generation": "A"}, func(a *anatomy) {
			from, to := a.at(second, "column_metadata").Off, a.at(first, "column_metadata").Off
			a.exchange(a.at("file_metadata").Off, from, to)
		}},
		"E, pages": {map[string]string{"crc": "false", "index": "false"}, func(a *anatomy) {
			a.exchange(a.at("file_metadata").Off, a.at(second).Off, a.at(first).Off)
		}},
	} {
		a := anatomyOf(t, c.opts)
		c.harm(a)
		tree := store.NewMemory(map[string][]byte{"f.red": a.bytes})
		o := stoa.OpenOptions{Tree: tree, Formats: []format.Format{redfile.Format}}
		tab, err := stoa.Open(t.Context(), "f.red", o)
		if err == nil {
			for _, err = range tab.Scan(t.Context(), stoa.ScanSpec{}) {
				if err != nil {
					break
				}
			}
			tab.Close()
		}
		if !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: reading it: %v, want damage", what, err)
		}
	}
}
