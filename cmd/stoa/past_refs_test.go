package main

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// metadataOf returns the metadata of a version of a table of Iceberg.
func metadataOf(t *testing.T, version int) map[string]any {
	t.Helper()
	b, err := os.ReadFile("lake/metadata/v" + strconv.Itoa(version) + ".metadata.json")
	var doc map[string]any
	if err == nil {
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.UseNumber() // ids are longer than the digits of a float
		err = d.Decode(&doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// threeSnapshots writes a table of three snapshots by stoa, and returns the metadata of the last.
func threeSnapshots(t *testing.T) (doc map[string]any, snapshots []any) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, "1.jsonl", "{\"id\":1}\n")
	write(t, "2.jsonl", "{\"id\":1}\n{\"id\":2}\n")
	write(t, "3.jsonl", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n")
	write(t, "next.jsonl", "{\"id\":1}\n{\"id\":4}\n")
	do(t, "convert", "1.jsonl", "--to", "iceberg", "-o", "lake", "-q")
	do(t, "convert", "--catch-up", "2.jsonl", "-o", "lake", "-q")
	do(t, "convert", "--catch-up", "3.jsonl", "-o", "lake", "-q")
	doc = metadataOf(t, 3)
	return doc, doc["snapshots"].([]any)
}

// commitByOthers writes the metadata as the next version, as other engines do.
func commitByOthers(t *testing.T, doc map[string]any) {
	t.Helper()
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	write(t, "lake/metadata/v4.metadata.json", string(b))
	write(t, "lake/metadata/version-hint.text", "4")
}

// TestCatchUpAfterRollback: where others have made an older snapshot the current one, catching up is refused however
// the metadata show that, and changes nothing. Snapshots of other branches do not count.
func TestCatchUpAfterRollback(t *testing.T) {
	type object = map[string]any
	idOf := func(s any) any { return s.(object)["snapshot-id"] }
	back := func(doc object, to any) { // as set-snapshot-ref does
		doc["current-snapshot-id"] = idOf(to)
		doc["refs"].(object)["main"].(object)["snapshot-id"] = idOf(to)
		doc["snapshot-log"] = append(doc["snapshot-log"].([]any), object{"snapshot-id": idOf(to),
			"timestamp-ms": doc["last-updated-ms"]})
	}
	cases := map[string]struct {
		change  func(doc object, all []any)
		refused string
	}{
		"one": {func(doc object, all []any) { back(doc, all[1]) }, "others have made another snapshot the current"},
		"two": {func(doc object, all []any) { back(doc, all[0]) }, "others have made another snapshot the current"},
		"without a log": {func(doc object, all []any) { back(doc, all[1]); delete(doc, "snapshot-log") },
			"others have made another snapshot the current"},
		"tagged before": {func(doc object, all []any) {
			back(doc, all[1])
			doc["refs"].(object)["kept"] = object{"snapshot-id": idOf(all[2]), "type": "tag"}
			delete(doc, "snapshot-log")
		}, "others have made another snapshot the current"},
		"then compacted": {func(doc object, all []any) {
			last := all[2].(object)
			last["parent-snapshot-id"] = idOf(all[0])
			last["summary"] = object{"operation": "replace", "engine-name": "other"}
		}, "others have made another snapshot the current"},
		"no snapshot is current": {func(doc object, all []any) {
			doc["current-snapshot-id"] = -1
			delete(doc["refs"].(object), "main")
		}, "others have made another snapshot the current"},
		"then expired": {func(doc object, all []any) {
			back(doc, all[1])
			doc["snapshots"], doc["snapshot-log"] = all[:2], doc["snapshot-log"].([]any)[3:]
		}, "has expired"},
		"another branch": {func(doc object, all []any) {
			s := object{"snapshot-id": 77, "parent-snapshot-id": idOf(all[2]), "sequence-number": 4,
				"timestamp-ms": doc["last-updated-ms"], "manifest-list": all[2].(object)["manifest-list"],
				"summary": object{"operation": "append", "engine-name": "other"}}
			doc["snapshots"], doc["last-sequence-number"] = append(slices.Clone(all), s), 4
			doc["refs"].(object)["other"] = object{"snapshot-id": 77, "type": "branch"}
		}, ""},
		"a tag": {func(doc object, all []any) {
			doc["refs"].(object)["t"] = object{"snapshot-id": idOf(all[0]), "type": "tag"}
		}, ""},
		"old expired": {func(doc object, all []any) { doc["snapshots"] = all[2:] }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			doc, all := threeSnapshots(t)
			c.change(doc, all)
			commitByOthers(t, doc)
			before := treeOf(t, "lake")
			got := said("nowhere", "convert", "--catch-up", "next.jsonl", "-o", "lake", "-q")
			if c.refused == "" {
				if rows := do(t, "cat", "-f", "jsonl", "lake"); !strings.HasSuffix(got, "status: 0") ||
					rows != "{\"id\":1}\n{\"id\":4}\n" {
					t.Errorf("%s, rows %s", got, rows)
				}
				return
			}
			if after := treeOf(t, "lake"); !strings.HasSuffix(got, "status: 1") ||
				!strings.Contains(got, c.refused) || !slices.Equal(after, before) {
				t.Errorf("%s; before %v, after %v", got, before, after)
			}
		})
	}
}

// TestCatchUpKeepsMetadata: what others have set in the metadata of a table stays as it is, whether or not stoa knows
// it: catching up changes what its snapshot is about.
func TestCatchUpKeepsMetadata(t *testing.T) {
	doc, _ := threeSnapshots(t)
	main := doc["refs"].(map[string]any)["main"].(map[string]any)
	for _, m := range []map[string]any{doc, main, doc["properties"].(map[string]any)} {
		m["unknown"] = "kept"
	}
	main["min-snapshots-to-keep"], main["max-snapshot-age-ms"], main["max-ref-age-ms"] = json.Number("50"),
		json.Number("1000000000007"), json.Number("9007199254740993")
	doc["statistics"] = []any{map[string]any{"snapshot-id": main["snapshot-id"], "statistics-path": "p.puffin"}}
	doc["partition-statistics"] = []any{map[string]any{"statistics-path": "q.puffin"}}
	doc["encryption-keys"] = []any{map[string]any{"key-id": "k"}}
	doc["refs"].(map[string]any)["b"] = map[string]any{"snapshot-id": main["snapshot-id"], "type": "branch",
		"max-ref-age-ms": json.Number("5"), "unknown": []any{"kept"}}
	commitByOthers(t, doc)
	do(t, "convert", "--catch-up", "next.jsonl", "-o", "lake", "-q")
	after := metadataOf(t, 5)
	if after["current-snapshot-id"] == doc["current-snapshot-id"] {
		t.Fatal("no snapshot was added")
	}
	main["snapshot-id"] = after["current-snapshot-id"]
	changed := []string{"current-snapshot-id", "last-sequence-number", "last-updated-ms", "metadata-log",
		"snapshot-log", "snapshots"}
	for key, was := range doc {
		if now := after[key]; !slices.Contains(changed, key) && !reflect.DeepEqual(now, was) {
			t.Errorf("%s: got %v, want %v", key, now, was)
		}
	}
	for _, key := range []string{"metadata-log", "snapshot-log", "snapshots"} {
		was, now := doc[key].([]any), after[key].([]any)
		if len(now) != len(was)+1 || !reflect.DeepEqual(now[:len(was)], was) {
			t.Errorf("%s: got %v, want %v and one more", key, now, was)
		}
	}
}
