//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// budgetVerbs are calls of the verbs that open tables. OUT is the directory for their output, SAME the source, TABLE a
// new table with the source's schema.
var budgetVerbs = []string{"cat", "cat --damaged skip-rows", "head", "tail", "count", "schema", "meta", "stats", "ls",
	"describe", "plan", "explain", "advise", "get --row 0", "diff SAME", "verify", "verify --quick", "verify --deep",
	"convert -o OUT/x.jsonl", "convert --all -o OUT/", "recover -o OUT/x.jsonl", "seal -o OUT/x.seal", "load TABLE"}

// budgetPlaces writes a source of every format. The nested ones have a list and a struct in a struct.
func budgetPlaces(t *testing.T) (places map[string]string, nested map[string]bool) {
	dir := t.TempDir()
	places, nested = map[string]string{}, map[string]bool{}
	write := func(name, rows string) string {
		place := filepath.Join(dir, name)
		if err := os.WriteFile(place, []byte(rows), 0o644); err != nil {
			t.Fatal(err)
		}
		return place
	}
	deep := write("deep.jsonl", strings.Repeat(`{"id":1,"name":"x","l":[1,2],"s":{"u":{"w":"z"},"v":2}}`+"\n", 9))
	flat := write("flat.jsonl", strings.Repeat(`{"id":1,"name":"x","v":2.5}`+"\n", 9))
	places["jsonl"], nested["jsonl"] = deep, true
	keyed := write("keyed.jsonl", `{"id":1,"name":"x"}`+"\n"+`{"id":2,"name":"y"}`+"\n")
	for what, c := range map[string]struct{ from, to, out string }{
		"parquet":     {deep, "parquet", "a.parquet"},
		"arrow":       {deep, "arrow", "a.arrow"},
		"arrows":      {deep, "arrow", "a.arrows"},
		"redfile":     {deep, "redfile", "a.red"},
		"trevni":      {deep, "trevni", "a.trv"},
		"trevni-avro": {flat, "trevni-avro", "b.trv"},
		"csv":         {flat, "csv", "a.csv"},
		"tsv":         {flat, "tsv", "a.tsv"},
		"cfiles":      {flat, "cfile", "cfiles/"},
		"carbon file": {deep, "carbon", "carbon/"},
		"kudu-backup": {keyed, "kudu-backup --opt table=t --opt key=id --opt part-rows=1", "backup/"},
	} {
		place := filepath.Join(dir, c.out) + c.out[len(strings.TrimSuffix(c.out, "/")):]
		args := append([]string{"convert", c.from, "-q", "-o", place, "--to"}, strings.Fields(c.to)...)
		if st := run(context.Background(), args, strings.NewReader(""), io.Discard, os.Stderr); st != 0 {
			t.Fatalf("%s: status %d", what, st)
		}
		places[what], nested[what] = place, c.from == deep
	}
	places["cfile"] = filepath.Join(dir, "k.cfile")
	copyFile(t, "../../corpus/kudu/1.18.1/key_int32/k.ck.cfile", places["cfile"])
	backup, err := filepath.Glob(filepath.Join(places["kudu-backup"], "*/*"))
	if err != nil || len(backup) != 1 {
		t.Fatal(backup, err)
	}
	places["kudu-backup"] = backup[0]
	places["carbon"] = filepath.Join(dir, "managed")
	carbonSample("managed_complex")(t, places["carbon"])
	nested["carbon"] = true
	places["kudu"] = filepath.Join(dir, "kudu")
	kuduSample(t, places["kudu"])
	found, err := filepath.Glob(filepath.Join(places["kudu"], "wal/tablet-meta/*"))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	places["kudu-metadata"] = found[0]
	places["kudu-wal"] = filepath.Join(dir, "wal-000000001")
	copyFile(t, "../../format/kudu/testdata/wal/wals/c3f631e19af44f00bb1082d149777f73/wal-000000001",
		places["kudu-wal"])
	return places, nested
}

// TestBudgetsOverAll: every verb that opens tables, over every format, refuses a table that exceeds --memory,
// --max-fields or --max-depth with status 1 and a message that names the flag, and leaves nothing behind.
func TestBudgetsOverAll(t *testing.T) {
	places, nested := budgetPlaces(t)
	for what, place := range places {
		t.Run(what, func(t *testing.T) {
			calls := 0
			for _, verb := range budgetVerbs {
				flags := []string{"--memory 1B"}
				if what != "cfile" && what != "kudu-metadata" && what != "kudu-wal" {
					flags = append(flags, "--max-fields 1")
				}
				if nested[what] {
					flags = append(flags, "--max-depth 1")
				}
				calls += len(flags)
				checkBudgets(t, verb, flags, place)
			}
			if calls < 20 && what != "kudu-metadata" && what != "kudu-wal" {
				t.Errorf("got %d calls, want 20 or more", calls)
			}
		})
	}
}

// checkBudgets reports failures of calls of verb, each with one of flags: a budget that is too small.
func checkBudgets(t *testing.T, verb string, flags []string, place string) {
	t.Helper()
	out, table := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "table")
	call := strings.ReplaceAll(strings.ReplaceAll(verb, "SAME", place), "OUT", out)
	if strings.Contains(call, "TABLE") {
		sc := table + ".json"
		_, schema := runOver(t, "schema -f json", place)
		if err := os.WriteFile(sc, []byte(schema), 0o644); err != nil {
			t.Fatal(err)
		}
		if st, stderr := runOver(t, "create --schema "+sc, table); st != cli.StatusFine {
			t.Logf("%s: no table can have its schema: %s", place, stderr)
			return
		}
		call = strings.ReplaceAll(call, "TABLE", table)
	}
	empty := func() {
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	empty()
	if st, stderr := runOver(t, call, place); st != cli.StatusFine && st != cli.StatusDamage {
		t.Logf("%s does not apply: status %d, %.200s", verb, st, stderr)
		return
	}
	for _, flag := range flags {
		empty()
		st, stderr := runOver(t, call+" "+flag, place)
		if name := strings.Fields(flag)[0]; st != cli.StatusCannot || !strings.Contains(stderr, name) {
			t.Errorf("%s %s: got status %d, want %d and a message that names %s: %.300s", verb, flag, st,
				cli.StatusCannot, name, stderr)
		}
		if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
			t.Errorf("%s %s: got %v, %v left, want nothing", verb, flag, left, err)
		}
	}
}
