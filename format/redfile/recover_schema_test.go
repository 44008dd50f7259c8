package redfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// sampleSchemaJSON is the schema of the table of the killed writers, in the form of `stoa schema -f json`.
const sampleSchemaJSON = `{"fields": [
	{"name": "id", "type": "int64", "nullable": false},
	{"name": "name", "type": "utf8", "nullable": true},
	{"name": "list", "type": "list", "nullable": true, "children": [{"name": "item", "type": "int32",
		"nullable": true}]}
]}`

// TestRecoverWithSchema truncates files without sync blocks within their first row group, where nothing in them gives
// the number of columns or, without the Arrow schema, their types: a schema given by the user does.
func TestRecoverWithSchema(t *testing.T) {
	for _, opts := range []map[string]string{{}, {"generation": "A"}, {"arrow-schema": "false"},
		{"generation": "A", "arrow-schema": "false", "protocol": "binary", "index": "false"}} {
		opts["sync"], opts["row-group-rows"], opts["page-size"] = "0", "20", "200"
		whole := writeSample(t, 60, opts)
		tree := store.NewMemory(map[string][]byte{"whole.red": whole, "schema.json": []byte(sampleSchemaJSON),
			"wrong.json": []byte(strings.Replace(sampleSchemaJSON, "int64", "int32", 1)),
			"other.json": []byte(strings.Replace(sampleSchemaJSON, "\"id\"", "\"no\"", 1)),
			"null.json":  []byte(strings.Replace(sampleSchemaJSON, "\"nullable\": false", "\"nullable\": true", 1))})
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			var group, col int
			if k, _ := fmt.Sscanf(n.Name, "row_groups[%d].columns[%d]", &group, &col); n.Depth > 0 || k < 2 ||
				group > 1 || group == 1 && col == 2 {
				continue
			}
			tree.Put("f.red", whole[:n.At.End()+3])
			tg := format.Target{Tree: tree, Name: "f.red"}
			for _, from := range []string{"whole.red", "schema.json"} {
				if from == "whole.red" && opts["arrow-schema"] == "false" {
					continue // it has no more than the file
				}
				r, found, err := redfile.Format.Recover(context.Background(), tg,
					format.OpenOptions{Opts: map[string]string{"schema": from}})
				if err != nil {
					t.Fatalf("%v, %s: %v", opts, from, err)
				}
				for i, f := range sampleSchema.Fields() {
					if got := r.Schema().Field(i); got.Name != f.Name || got.Type.ID() != f.Type.ID() {
						t.Errorf("%v, %s: field %d is %v", opts, from, i, got)
					}
				}
				groups, lacks := wholeGroups(t, r)
				if want := group + (col+1)/3; len(groups) != want || len(lacks) != 2-col {
					t.Errorf("%v, %s: cut after %s: %d whole row groups, of the last one columns %v are missing",
						opts, from, n.Name, len(groups), lacks)
				}
				if len(lacks) > 0 {
					checkCut(t, r, tree, 20*len(groups), lacks, found)
				}
				if slices.ContainsFunc(found,
					func(f region.Finding) bool { return f.Code == "redfile.columns.unknown" }) {
					t.Errorf("%v, %s: %+v", opts, from, found)
				}
				r.Close()
			}
			for _, from := range []string{"wrong.json", "other.json", "null.json", "f.red", "nowhere"} {
				if _, _, err := redfile.Format.Recover(context.Background(), tg,
					format.OpenOptions{Opts: map[string]string{"schema": from}}); !errors.Is(err, fault.Invalid) &&
					from != "nowhere" || err == nil {
					t.Errorf("%v, %s: %v", opts, from, err)
				}
			}
		}
	}
}

// TestRecoverPagesOnly truncates a file written by redelm, which has metadata of columns only at its end: recovery
// reports that nothing can be recovered, and why.
func TestRecoverPagesOnly(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(golden, "red1/flat_pages.red"))
	if err != nil {
		t.Fatal(err)
	}
	tree := store.NewMemory(map[string][]byte{"f.red": b[:len(b)*3/4], "schema.json": []byte(sampleSchemaJSON)})
	for _, opts := range []map[string]string{nil, {"schema": "schema.json"}} {
		_, _, err = redfile.Format.Recover(context.Background(), format.Target{Tree: tree, Name: "f.red"},
			format.OpenOptions{Opts: opts})
		if !errors.Is(err, fault.Corrupt) ||
			!strings.Contains(err.Error(), "pages do not say which column they are of") {
			t.Errorf("%v: %v", opts, err)
		}
	}
}

// TestRecoverRenamedColumn: a flipped bit in a column name in a schema without a checksum costs nothing: the column's
// chunks have its name.
func TestRecoverRenamedColumn(t *testing.T) {
	for _, opts := range []map[string]string{{"crc": "false"},
		{"crc": "false", "sync": "0", "arrow-schema": "false"}, {"crc": "false", "protocol": "binary"}} {
		opts["row-group-rows"] = "10"
		whole := writeSample(t, 40, opts)
		a := &anatomy{t: t, bytes: slices.Clone(whole)}
		var err error
		if a.nodes, err = describeAll(target(whole)); err != nil {
			t.Fatal(err)
		}
		schema := a.at("file_metadata", "schema")
		id := schema.Off + int64(bytes.Index(a.bytes[schema.Off:], []byte("id")))
		a.bytes[id] ^= 1
		r, found, err := redfile.Format.Recover(ctx, target(a.bytes), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(mustContent(t, whole), "\n0 10 0 ") // after the names of the schema
		text, errs := readerContent(r, target(a.bytes))
		r.Close()
		_, got, _ := strings.Cut(text, "\n0 10 0 ")
		if len(errs) > 0 || got != want || want == "" {
			t.Errorf("%v: %v, %s", opts, errs, firstDifference(got, want))
		}
		if len(found) != 1 || found[0].Code != "redfile.footer.damaged" || found[0].Lost != -1 ||
			found[0].At != a.at("file_metadata") || !strings.Contains(found[0].Message, `["hd"]`) {
			t.Errorf("%v: reported %+v", opts, found)
		}
	}
}

func mustContent(t *testing.T, b []byte) string {
	t.Helper()
	text, errs := content(target(b))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return text
}
