package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRowsGoWhereTheirPartitionIs: rows are written to the directory that their partition has, though its name spells
// the value otherwise, because CarbonData reads a partition only there; a new partition has the name that Spark gives
// it.
func TestRowsGoWhereTheirPartitionIs(t *testing.T) {
	for _, c := range []struct{ kind, value, name, other string }{
		{"double", "2", "p=2.0", "p=2e0"},
		{"float", "0.1", "p=0.10000000149011612", "p=0.1"},
		{"decimal(20,10)", `"0"`, "p=0E-10", "p=0.0000000000"},
		{"int", "7", "p=7", "p=07"},
		{"string", `"{x}"`, "p=%7Bx}", "p=%7Bx%7D"},
		{"date", `"2024-02-29"`, "p=2024-02-29", "p=2024%2D02-29"},
	} {
		dir := t.TempDir()
		table, schema, rows := filepath.Join(dir, "t"), filepath.Join(dir, "schema"), filepath.Join(dir, "rows.jsonl")
		write(t, schema, "id int\np "+c.kind+"\n")
		row := func(id string) string { return `{"id":` + id + `,"p":` + c.value + "}\n" }
		write(t, rows, row("1"))
		do(t, "create", table, "--schema", schema, "--partition", "p")
		do(t, "load", table, rows)
		names := func() (out []string) {
			list, err := os.ReadDir(table)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range list {
				if strings.HasPrefix(e.Name(), "p=") {
					out = append(out, e.Name())
				}
			}
			return out
		}
		if got := names(); !slices.Equal(got, []string{c.name}) {
			t.Errorf("%s: %q, expected %s", c.kind, got, c.name)
			continue
		}
		if err := os.Rename(filepath.Join(table, c.name), filepath.Join(table, c.other)); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(table, "Metadata", "segments", "*"))
		b, err := os.ReadFile(files[0])
		if err != nil || len(files) != 1 || !strings.Contains(string(b), c.name) {
			t.Fatal(files, err, string(b))
		}
		write(t, files[0], strings.ReplaceAll(string(b), c.name, c.other))
		write(t, rows, row("2"))
		do(t, "load", table, rows)
		do(t, "update", table, "--where", "id = 1", "--set", "id=3")
		do(t, "compact", table, "--major")
		if got := names(); !slices.Equal(got, []string{c.other}) {
			t.Errorf("%s: %q, expected only %s", c.kind, got, c.other)
		}
		do(t, "load", table, rows, "--overwrite", "--partition", "p="+strings.Trim(c.value, `"`))
		out := do(t, "cat", table, "-f", "jsonl", "--columns", "id")
		if want := `{"id":2}`; strings.TrimSpace(out) != want {
			t.Errorf("%s: after the partition is overwritten: %s, expected %s", c.kind, out, want)
		}
	}
}

// TestPartitionOfNoNumber: a number that is not finite would be read as null as the value of a partition, so it is
// refused, or counted as changed.
func TestPartitionOfNoNumber(t *testing.T) {
	dir := t.TempDir()
	table, schema, rows := filepath.Join(dir, "t"), filepath.Join(dir, "schema"), filepath.Join(dir, "rows.jsonl")
	write(t, schema, "id int\np double\n")
	write(t, rows, `{"id":1,"p":"NaN"}`+"\n")
	do(t, "create", table, "--schema", schema, "--partition", "p")
	if told := said(dir, "load", table, rows); !strings.HasSuffix(told, "status: 1") ||
		!strings.Contains(told, `"NaN" in a partition column would be read as null`) {
		t.Errorf("load: %s", told)
	}
	told := said(dir, "load", table, rows, "--opt", "nulls=merge")
	out := do(t, "cat", table, "-f", "jsonl")
	if !strings.Contains(told, "nulls=merge") || strings.TrimSpace(out) != `{"id":1,"p":null}` {
		t.Errorf("%s\n%s", told, out)
	}
}
