package redfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
)

// TestLostSchemaIsReported: whenever recovery returns columns that differ from those of the intact file, by name or
// type, an error reports that the schema is lost, and names each column; in these cases a schema given by the user
// restores them.
func TestLostSchemaIsReported(t *testing.T) {
	lost := 0
	for _, opts := range []map[string]string{{}, {"generation": "A"}, {"sync": "0"},
		{"crc": "false", "protocol": "binary"}} {
		opts["row-group-rows"], opts["page-size"] = "20", "200"
		whole := writeSample(t, 60, opts)
		tree := store.NewMemory(map[string][]byte{"whole.red": whole})
		for _, front := range []int{0, 40, 400} { // number of bytes that are overwritten, up to the first sync block
			for _, end := range []int{0, 8, 60, 700} {
				b := slices.Clone(whole)
				invertBits(b[4 : 4+front])
				invertBits(b[len(b)-end:])
				tree.Put("f.red", b)
				tg := format.Target{Tree: tree, Name: "f.red"}
				r, found, err := redfile.Format.Recover(t.Context(), tg, format.OpenOptions{})
				if err != nil {
					continue
				}
				k := slices.IndexFunc(found, func(f region.Finding) bool { return f.Code == "redfile.schema.lost" })
				sc := r.Schema()
				same := sc.Equal(sampleSchema) || fmt.Sprint(sc.Fields()) == fmt.Sprint(sampleSchema.Fields())
				if r.Close(); !same && k < 0 {
					t.Errorf("%v, %d and %d bytes: the columns are %v, and that is not reported: %+v", opts, front, end,
						sc, found)
				}
				if k < 0 {
					continue
				}
				lost++
				for _, f := range sampleSchema.Fields() {
					if !strings.Contains(found[k].Message, f.Name) {
						t.Errorf("%v: the message does not name %s: %s", opts, f.Name, found[k].Message)
					}
				}
				r, found, err = redfile.Format.Recover(t.Context(), tg,
					format.OpenOptions{Opts: map[string]string{"schema": "whole.red"}})
				if err != nil {
					t.Fatalf("%v, with the schema: %v", opts, err)
				}
				if r.Close(); slices.ContainsFunc(found,
					func(f region.Finding) bool { return f.Code == "redfile.schema.lost" }) {
					t.Errorf("%v: the schema is named, and reported as lost: %+v", opts, found)
				}
			}
		}
	}
	if lost < 5 {
		t.Errorf("the schema was lost %d times", lost)
	}
}

// invertBits flips every bit.
func invertBits(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}
