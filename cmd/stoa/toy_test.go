package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/formattest/toy"
	"stoa/region"
	"stoa/store"
)

// These tests show that a new format needs only a folder and a line in the list: toy has a parser, a reader and a page
// decoder, and nothing else is changed.

// toyLine returns row i of the toy file as CSV.
func toyLine(i int) string { return fmt.Sprintf("%d,row %d", 3*i, i) }

// toyFile returns a file of 100 rows, in row groups of 40 and pages of 10.
func toyFile() []byte {
	n, text := toy.Column{Name: "n"}, toy.Column{Name: "t"}
	for i := range 100 {
		n.Ints, text.Texts = append(n.Ints, int64(3*i)), append(text.Texts, fmt.Sprintf("row %d", i))
	}
	return toy.File(40, 10, n, text)
}

// withToy runs the command with format toy added, in a directory with one file.
func withToy(t *testing.T, file []byte, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.toy", file, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	a := cli.NewApp(strings.NewReader(""), &out, &errs)
	a.Formats = append(a.Formats, toy.Format)
	status = runArgs(a, t.Context(), args)
	return status, out.String(), errs.String()
}

// toyLines returns the rows for which f is true, as CSV.
func toyLines(f func(i int) bool) string {
	out := "n,t\n"
	for i := range 100 {
		if f(i) {
			out += toyLine(i) + "\n"
		}
	}
	return out
}

// TestNewFormat: verbs read, list, verify, describe, recover and convert files of a new format.
func TestNewFormat(t *testing.T) {
	all := toyLines(func(int) bool { return true })
	for args, want := range map[string]string{
		"cat -f csv a.toy":                all,
		"cat -f csv a.toy --where n>=240": toyLines(func(i int) bool { return i >= 80 }),
		"get a.toy --row 57 -f csv":       toyLines(func(i int) bool { return i == 57 }),
		"count a.toy":                     "100\n",
		"count a.toy --where n<60":        "20\n",
	} {
		if st, out, errs := withToy(t, toyFile(), strings.Fields(args)...); st != 0 || out != want {
			t.Errorf("%s: got status %d, %s\n%s\nwant\n%s", args, st, errs, out, want)
		}
	}
	for args, want := range map[string][]string{
		"formats -f json":         {`"toy"`},
		"ls a.toy":                {"toy", "100"},
		"schema a.toy":            {"n", "int64", "t", "utf8"},
		"meta a.toy":              {"a.toy"},
		"stats a.toy":             {"n", "t"},
		"verify a.toy":            {"healthy"},
		"verify --quick a.toy":    {"healthy"},
		"describe a.toy":          {"row group[2]", "page[3]", "rows 10 to 20", "metadata"},
		"recover a.toy -o o.csv":  {},
		"convert a.toy o.parquet": {},
	} {
		st, out, errs := withToy(t, toyFile(), strings.Fields(args)...)
		for _, w := range want {
			if st != 0 || !strings.Contains(out+errs, w) {
				t.Errorf("%s: got status %d, want 0 and %q in\n%s%s", args, st, w, out, errs)
			}
		}
		if b, err := os.ReadFile("o.csv"); err == nil && string(b) != all {
			t.Errorf("%s: got\n%s\nwant\n%s", args, b, all)
		}
	}
}

// TestNewFormatInMatrix: the matrix of formats lists what the new format supports, and that it cannot write.
func TestNewFormatInMatrix(t *testing.T) {
	_, out, _ := withToy(t, nil, "formats", "-f", "json")
	var docs []map[string]any
	if err := json.Unmarshal([]byte(out), &docs); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(docs, func(d map[string]any) bool { return d["name"] == "toy" })
	if i < 0 {
		t.Fatalf("got no toy in\n%s", out)
	}
	for what, can := range map[string]bool{"read": true, "list": true, "describe": true, "verify": true,
		"recover": true, "write": false} {
		if docs[i][what] != can {
			t.Errorf("%s: got %v, want %v", what, docs[i][what], can)
		}
	}
}

// TestNewFormatCoverage: describe claims each byte of a file once.
func TestNewFormatCoverage(t *testing.T) {
	file := toyFile()
	withToy(t, file, "count", "a.toy")
	var nodes []region.Node
	for n, err := range stoa.Describe(t.Context(), "a.toy", stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{
		Formats: append(catalogue.Formats(), toy.Format)}}) {
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	formattest.Partition(t, nodes, "a.toy", int64(len(file)))
}

// damagedToy returns a toy file with a changed byte in the text of row 57, and its offset.
func damagedToy(t *testing.T) (file []byte, at int64) {
	file = toyFile()
	i := bytes.Index(file, []byte("row 57"))
	if i < 0 {
		t.Fatal("no row 57 in the file")
	}
	file[i] ^= 1
	return file, int64(i)
}

// TestNewFormatDamage: a damaged page is reported with location, column and rows, and all other pages are recovered.
func TestNewFormatDamage(t *testing.T) {
	file, at := damagedToy(t)
	for _, verb := range []string{"cat", "verify", "recover -o o.csv"} {
		if st, out, errs := withToy(t, file, append(strings.Fields(verb), "a.toy")...); st != cli.StatusDamage {
			t.Errorf("%s: got status %d, want %d\n%s%s", verb, st, cli.StatusDamage, out, errs)
		}
	}
	if b, err := os.ReadFile("o.csv"); err != nil || string(b) != toyLines(func(i int) bool { return i/10 != 5 }) {
		t.Errorf("recovered: got %v\n%s\nwant all rows but 50 to 59", err, b)
	}
	_, out, _ := withToy(t, file, "cat", "-f", "csv", "--damaged", "null-cells", "a.toy")
	want := toyLines(func(int) bool { return true })
	for i := 50; i < 60; i++ {
		want = strings.Replace(want, toyLine(i)+"\n", fmt.Sprintf("%d,\n", 3*i), 1)
	}
	if out != want {
		t.Errorf("null cells: got\n%s\nwant\n%s", out, want)
	}
	var found []region.Finding
	for f, err := range stoa.Verify(t.Context(), "a.toy", stoa.OpenOptions{Formats: []format.Format{toy.Format}}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, f)
	}
	if len(found) != 1 {
		t.Fatalf("got %d findings, want 1: %+v", len(found), found)
	}
	f := found[0]
	if f.At.Object != "a.toy" || f.At.Off > at || f.At.End() <= at || f.Column != "t" || f.Part != "a.toy" ||
		f.Rows != [2]int64{50, 60} || f.Lost != 10 || f.Severity != region.Error {
		t.Errorf("damage at %d: got finding %+v, want rows 50 to 60 of column t", at, f)
	}
}

// TestNewFormatContradictions: contradictory metadata is reported.
func TestNewFormatContradictions(t *testing.T) {
	for from, to := range map[string]string{
		`"Rows":20,`:               `"Rows":21,`, // of the last row group
		`"Len":84,"Rows":10}]`:     `"Len":84,"Rows":11}]`,
		`"Off":4,"Len":84,`:        `"Off":4,"Len":94,`,
		`{"Names":["n","t"],`:      `{"Names":["n","q"],`,
		`{"Off":4,"Len":84,"Rows"`: `{"Off":9,"Len":84,"Rows"`,
	} {
		file := toyFile()
		damaged := bytes.Replace(file, []byte(from), []byte(to), 1)
		if bytes.Equal(file, damaged) {
			t.Errorf("no %s in\n%s", from, file)
			continue
		}
		for _, verb := range []string{"verify", "cat"} {
			if st, out, errs := withToy(t, damaged, verb, "a.toy"); st != cli.StatusDamage {
				t.Errorf("%s: %s: got status %d, want %d\n%s%s", to, verb, st, cli.StatusDamage, out, errs)
			}
		}
		if st, out, _ := withToy(t, damaged, "verify", "--quick", "a.toy"); strings.Contains(to, "Rows\":2") &&
			st != cli.StatusDamage {
			t.Errorf("%s: verify --quick: got status %d, want %d\n%s", to, st, cli.StatusDamage, out)
		}
	}
}

// TestNewFormatVerdict: whichever byte changes, verify reports an error exactly if reading fails.
func TestNewFormatVerdict(t *testing.T) {
	file := toyFile()
	bad, healthy := 0, 0
	for i := range file {
		damaged := bytes.Clone(file)
		damaged[i] ^= 0x41
		tree := store.NewMemory(map[string][]byte{"a.toy": damaged})
		o := stoa.OpenOptions{Formats: []format.Format{toy.Format}, From: "toy", Tree: tree}
		read := func() error {
			tab, err := stoa.Open(t.Context(), "a.toy", o)
			if err != nil {
				return err
			}
			defer tab.Close()
			for _, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
				if err != nil {
					return err
				}
			}
			return nil
		}()
		var found error
		for f, err := range stoa.Verify(t.Context(), "a.toy", o) {
			if err != nil {
				found = err
			} else if f.Severity == region.Error {
				found = errors.New(f.Message)
			}
		}
		if (read == nil) != (found == nil) {
			t.Errorf("byte %d of %d: got %v from reading, %v from verify", i, len(file), read, found)
		}
		if read == nil {
			healthy++
		} else {
			bad++
		}
	}
	if bad < len(file)/2 || healthy == 0 {
		t.Errorf("got %d damaged files, %d healthy ones, want at least half damaged and one healthy", bad, healthy)
	}
}
