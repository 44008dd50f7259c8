//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
)

// do runs the command, which must succeed, and returns its output.
func do(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if st := run(t.Context(), args, nil, &out, &errs); st != cli.StatusFine {
		t.Fatalf("%v: got status %d: %s", args, st, &errs)
	}
	return out.String()
}

// lakeRows returns the rows of a table of columns id and s.
func lakeRows(t *testing.T, args ...string) map[int]string {
	t.Helper()
	out := map[int]string{}
	for line := range strings.Lines(do(t, append([]string{"cat", "-f", "jsonl"}, args...)...)) {
		var row struct {
			ID int
			S  string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if _, ok := out[row.ID]; ok {
			t.Errorf("%v: row %d is there twice", args, row.ID)
		}
		out[row.ID] = row.S
	}
	return out
}

// life is a CarbonData table that changes, and a model of it.
type life struct {
	t    *testing.T
	r    *rand.Rand
	rows map[int]string
	next int
}

const lifeTable = "store#db.t"

func newLife(t *testing.T, seed uint64) *life {
	t.Chdir(t.TempDir())
	l := &life{t: t, r: rand.New(rand.NewPCG(seed, 25)), rows: map[int]string{}}
	err := os.WriteFile("schema.txt", []byte("id bigint\ns string\n"), 0o666)
	if err == nil {
		err = os.Mkdir("store", 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	do(t, "create", lifeTable, "--schema", "schema.txt")
	l.load(40)
	return l
}

func (l *life) load(n int) {
	l.t.Helper()
	var text strings.Builder
	for i := l.next; i < l.next+n; i++ {
		l.rows[i] = fmt.Sprintf("row %d", i)
		fmt.Fprintf(&text, "{\"id\": %d, \"s\": %q}\n", i, l.rows[i])
	}
	l.next += n
	if err := os.WriteFile("rows.jsonl", []byte(text.String()), 0o666); err != nil {
		l.t.Fatal(err)
	}
	do(l.t, "load", lifeTable, "rows.jsonl", "-q")
}

// change changes the table and its model.
func (l *life) change() {
	l.t.Helper()
	from := l.r.IntN(l.next)
	to := from + 1 + l.r.IntN(20)
	where := fmt.Sprintf("id >= %d and id < %d", from, to)
	switch l.r.IntN(3) {
	case 0:
		l.load(1 + l.r.IntN(30))
	case 1:
		do(l.t, "delete", lifeTable, "--where", where, "-q")
		maps.DeleteFunc(l.rows, func(id int, _ string) bool { return id >= from && id < to })
	case 2:
		do(l.t, "update", lifeTable, "--set", "s='changed'", "--where", where, "-q")
		for id := range l.rows {
			if id >= from && id < to {
				l.rows[id] = "changed"
			}
		}
	}
}

func (l *life) expect(want map[int]string, args ...string) {
	l.t.Helper()
	if got := lakeRows(l.t, args...); !maps.Equal(got, want) {
		l.t.Errorf("%v: got %d rows, want %d: %v, %v", args, len(got), len(want), got, want)
	}
}

// TestCatchUp changes a table of CarbonData, and catches up with it: the lake has its rows, and each older snapshot
// those of its time. A run that is killed leaves the old rows or the new ones.
func TestCatchUp(t *testing.T) {
	t.Run("iceberg", func(t *testing.T) { catchUp(t, "iceberg") })
	t.Run("iceberg 3", func(t *testing.T) {
		catchUp(t, "iceberg", "--opt", "format-version=3")
		checkRowIDs(t)
	})
	t.Run("delta", func(t *testing.T) { catchUp(t, "delta") })
}

// checkRowIDs checks that the snapshots of the table lake, of version 3, give each row an id once.
func checkRowIDs(t *testing.T) {
	t.Helper()
	list, _ := filepath.Glob("lake/metadata/v*.metadata.json") // the pattern is valid
	b, err := os.ReadFile(fmt.Sprintf("lake/metadata/v%d.metadata.json", len(list)))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Next      int64 `json:"next-row-id"`
		Snapshots []struct {
			First int64 `json:"first-row-id"`
			Rows  int64 `json:"added-rows"`
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	next := int64(0)
	for _, s := range doc.Snapshots {
		if s.First != next {
			t.Errorf("a snapshot begins with row id %d, want %d", s.First, next)
		}
		next += s.Rows
	}
	if doc.Next != next || next == 0 {
		t.Errorf("got the next row id %d, want %d", doc.Next, next)
	}
}

func catchUp(t *testing.T, to string, opts ...string) {
	l := newLife(t, 1)
	do(t, append([]string{"convert", lifeTable, "--to", to, "-o", "lake", "-q"}, opts...)...)
	var past []map[int]string
	steps := 4
	if !testing.Short() {
		steps = 12
	}
	for range steps {
		old := maps.Clone(l.rows)
		l.change()
		if !maps.Equal(old, l.rows) {
			past = append(past, old)
		}
		cmd := exec.Command(os.Args[0], "convert", "--catch-up", lifeTable, "-o", "lake", "-q")
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(l.r.IntN(60)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if got := lakeRows(t, "lake"); !maps.Equal(got, old) && !maps.Equal(got, l.rows) {
			t.Errorf("after a kill: got %v, want %v or %v", got, old, l.rows)
		}
		do(t, "convert", "--catch-up", lifeTable, "-o", "lake", "-q")
		l.expect(l.rows, "lake")
	}
	past = append(past, l.rows)
	ids := snapshotsOf(t)
	if len(ids) != len(past) || len(past) < steps/2 {
		t.Fatalf("got %d snapshots, want %d", len(ids), len(past))
	}
	for i, at := range ids {
		l.expect(past[i], "lake", "--at", at)
	}
	do(t, "verify", "lake", "-q")
}

// TestSnapshotsOfSegments converts a table of CarbonData with its history: at the time of each snapshot, the lake has
// the rows that the table had.
func TestSnapshotsOfSegments(t *testing.T) {
	for _, to := range []string{"iceberg", "delta"} {
		t.Run(to, func(t *testing.T) { snapshotsOfSegments(t, to) })
	}
}

func snapshotsOfSegments(t *testing.T, to string) {
	l := newLife(t, 2)
	var past []map[int]string
	for range 4 {
		past = append(past, maps.Clone(l.rows))
		time.Sleep(2 * time.Millisecond)
		l.load(5 + l.r.IntN(9))
	}
	do(t, "delete", lifeTable, "--where", "id < 7", "-q")
	maps.DeleteFunc(l.rows, func(id int, _ string) bool { return id < 7 })
	do(t, "convert", lifeTable, "--every", "segment", "--to", to, "-o", "lake", "-q")
	l.expect(l.rows, "lake")
	ids := snapshotsOf(t)
	if len(ids) != len(past)+2 {
		t.Fatalf("got %d snapshots, want %d", len(ids), len(past)+2)
	}
	for i, want := range past {
		l.expect(want, "lake", "--at", ids[i])
		l.expect(want, lifeTable, "--at", fmt.Sprint(i))
	}
}

// snapshotsOf returns the snapshots or versions of the table lake, the oldest first, as in --at.
func snapshotsOf(t *testing.T) (out []string) {
	versions, err := filepath.Glob("lake/_delta_log/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range versions { // of Delta
		out = append(out, fmt.Sprint(i))
	}
	if len(out) > 0 {
		return out
	}
	list, err := filepath.Glob("lake/metadata/v*.metadata.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(fmt.Sprintf("lake/metadata/v%d.metadata.json", len(list)))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Snapshots []struct {
			ID json.Number `json:"snapshot-id"`
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, s := range doc.Snapshots {
		out = append(out, s.ID.String())
	}
	return out
}

// TestPartitionBySource: the hash partitions of a Kudu table become buckets of Iceberg, and the table's properties say
// how the source was divided.
func TestPartitionBySource(t *testing.T) {
	t.Chdir(t.TempDir())
	err := os.WriteFile("rows.jsonl", []byte("{\"id\": 1, \"s\": \"a\"}\n{\"id\": 2, \"s\": \"b\"}\n"), 0o666)
	if err != nil {
		t.Fatal(err)
	}
	do(t, "convert", "rows.jsonl", "--to", "kudu-fs", "--opt", "table=t", "--opt", "key=id", "--opt", "buckets=3",
		"-o", "kudu/", "-q")
	do(t, "convert", "kudu", "--to", "iceberg", "--partition-by", "source", "-o", "lake", "-q")
	b, err := os.ReadFile("lake/metadata/v1.metadata.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"bucket[3]"`, `"HASH (id) PARTITIONS 3`, `"stoa.source.primary_key": "id"`,
		`"direction": "asc"`, `"default-sort-order-id": 1`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("the metadata lack %s: %s", want, b)
		}
	}
}

// TestDeletesOfPartitions: each file of position deletes has rows of one partition, whatever its values are,
// since readers apply it to the files of its own partition alone.
func TestDeletesOfPartitions(t *testing.T) {
	t.Chdir(t.TempDir())
	values := []int{-1 << 40, -3, -2, -1, 0, 1, 2, 0x110000, 0x110001, 1 << 40}
	rows := func(of func(i int) bool) string {
		var b strings.Builder
		for i := range 10 * len(values) {
			if of(i) {
				fmt.Fprintf(&b, "{\"p\": %d, \"id\": %d}\n", values[i%len(values)], i)
			}
		}
		return b.String()
	}
	write(t, "all.jsonl", rows(func(int) bool { return true }))
	write(t, "some.jsonl", rows(func(i int) bool { return i >= 4*len(values) }))
	do(t, "convert", "all.jsonl", "--to", "iceberg", "--partition-by", "p", "-o", "lake", "-q")
	do(t, "convert", "--catch-up", "some.jsonl", "-o", "lake", "-q")
	files, err := filepath.Glob("lake/data/*-deletes.parquet")
	if err != nil || len(files) != len(values) {
		t.Errorf("%d files of deletes, want %d; %v", len(files), len(values), err)
	}
	for _, name := range files {
		of := map[string]int{}
		for line := range strings.Lines(do(t, "cat", "-f", "jsonl", name)) {
			var row struct {
				Path string `json:"file_path"`
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			of[filepath.Dir(row.Path)]++
		}
		if len(of) != 1 {
			t.Errorf("%s has rows of %d partitions: %v", name, len(of), of)
		}
	}
}
