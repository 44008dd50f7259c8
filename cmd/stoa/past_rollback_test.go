package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// compact adds a snapshot by others of the same files as another, its parent, and makes it the current one.
func compact(t *testing.T, doc map[string]any, parent any) (added map[string]any) {
	t.Helper()
	added = maps.Clone(parent.(map[string]any))
	was := added["snapshot-id"].(json.Number).String()
	last, err := strconv.Atoi(was[len(was)-1:])
	if err != nil {
		t.Fatal(err)
	}
	id := was[:len(was)-1] + strconv.Itoa((last+1)%10)
	list := strings.TrimPrefix(added["manifest-list"].(string), "file://")
	b, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	write(t, list+".avro", strings.ReplaceAll(string(b), was, id)) // the list has the snapshot's id
	sequence, err := doc["last-sequence-number"].(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	doc["last-sequence-number"] = json.Number(strconv.FormatInt(sequence+1, 10))
	added["parent-snapshot-id"], added["snapshot-id"] = added["snapshot-id"], json.Number(id)
	added["manifest-list"] = "file://" + list + ".avro"
	added["sequence-number"], added["timestamp-ms"] = doc["last-sequence-number"], doc["last-updated-ms"]
	added["summary"] = map[string]any{"operation": "replace", "engine-name": "other"}
	doc["snapshots"] = append(slices.Clone(doc["snapshots"].([]any)), added)
	setMain(doc, added)
	return added
}

// setMain makes a snapshot the current one, as set-snapshot-ref does.
func setMain(doc map[string]any, s any) {
	id := s.(map[string]any)["snapshot-id"]
	doc["current-snapshot-id"] = id
	doc["refs"].(map[string]any)["main"].(map[string]any)["snapshot-id"] = id
	doc["snapshot-log"] = append(slices.Clone(doc["snapshot-log"].([]any)), map[string]any{"snapshot-id": id,
		"timestamp-ms": doc["last-updated-ms"]})
}

// TestCatchUpAfterHiddenRollback: a rollback that others have hidden, as they have compacted the files since and the
// snapshot from which they went back has expired, is not undone: what the sequence numbers or the log show of it is
// refused, and nothing is changed. Compactions without a rollback do not hinder catching up.
func TestCatchUpAfterHiddenRollback(t *testing.T) {
	type object = map[string]any
	expire := func(doc object, gone ...any) {
		doc["snapshots"] = slices.DeleteFunc(slices.Clone(doc["snapshots"].([]any)), func(s any) bool {
			return slices.ContainsFunc(gone, func(g any) bool {
				return g.(object)["snapshot-id"] == s.(object)["snapshot-id"]
			})
		})
	}
	cases := map[string]struct {
		change  func(doc object, all []any)
		refused string
	}{
		"the log is kept": {func(doc object, all []any) {
			setMain(doc, all[1])
			compact(t, doc, all[1])
			expire(doc, all[2])
		}, "has expired"},
		"the log is cut": {func(doc object, all []any) {
			setMain(doc, all[1])
			compact(t, doc, all[1])
			expire(doc, all[2])
			doc["snapshot-log"] = doc["snapshot-log"].([]any)[3:]
		}, "has expired"},
		"the log is gone": {func(doc object, all []any) {
			setMain(doc, all[0])
			compact(t, doc, compact(t, doc, all[0]))
			expire(doc, all[1], all[2])
			delete(doc, "snapshot-log")
		}, "has expired"},
		"only the log shows it": {func(doc object, all []any) {
			doc["last-sequence-number"] = json.Number("2")
			setMain(doc, all[1])
			compact(t, doc, all[1])
			expire(doc, all[2])
		}, "was the current one"},
		"compacted": {func(doc object, all []any) { compact(t, doc, all[2]) }, ""},
		"compacted twice, old expired": {func(doc object, all []any) {
			compact(t, doc, compact(t, doc, all[2]))
			expire(doc, all[0], all[1])
		}, ""},
		"compacted, old expired, the log is cut": {func(doc object, all []any) {
			compact(t, doc, all[2])
			expire(doc, all[0], all[1])
			doc["snapshot-log"] = doc["snapshot-log"].([]any)[2:]
		}, ""},
		"there and back": {func(doc object, all []any) { setMain(doc, all[0]); setMain(doc, all[2]) }, ""},
		"there and back, compacted, old expired": {func(doc object, all []any) {
			setMain(doc, all[0])
			setMain(doc, all[2])
			compact(t, doc, all[2])
			expire(doc, all[0], all[1])
		}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			doc, all := threeSnapshots(t)
			c.change(doc, all)
			commitByOthers(t, doc)
			rows, before := do(t, "cat", "-f", "jsonl", "lake"), treeOf(t, "lake")
			dry := said("nowhere", "convert", "--catch-up", "next.jsonl", "-o", "lake", "-q", "--dry-run")
			got := said("nowhere", "convert", "--catch-up", "next.jsonl", "-o", "lake", "-q")
			now, after := do(t, "cat", "-f", "jsonl", "lake"), treeOf(t, "lake")
			switch {
			case c.refused == "":
				if !strings.HasSuffix(got, "status: 0") || now != "{\"id\":1}\n{\"id\":4}\n" {
					t.Errorf("%s, rows %s", got, now)
				}
			case !strings.HasSuffix(got, "status: 1") || !strings.HasSuffix(dry, "status: 1") ||
				!strings.Contains(got, c.refused) || !slices.Equal(after, before) || now != rows:
				t.Errorf("%s; dry %s; rows %s, were %s", got, dry, now, rows)
			}
		})
	}
}
