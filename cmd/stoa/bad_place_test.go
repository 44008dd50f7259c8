package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// badCells are texts that are no values of the columns of TestBadPlaces, in which every row has them as good.
var badCells = map[string][2]string{"i": {"7", "x"}, "d": {"2024-05-06", "7"}, "p": {"1.50", "1.555"},
	"a": {"[1,2]", `["u"]`}}

// badPlaces writes three texts of n rows with the columns id, i, d, p, a, and one cell that is no value of its column.
func badPlaces(t *testing.T, dir, form, column string, n, file, row int) (names []string) {
	t.Helper()
	for f := range 3 {
		var b strings.Builder
		for r := range n {
			cell := func(c string) string {
				if c == column && f == file && r == row {
					return badCells[c][1]
				}
				return badCells[c][0]
			}
			quoted := func(c string) string { return strconv.Quote(cell(c)) }
			id, i := strconv.Itoa(f*n+r), cell("i")
			switch form {
			case "jsonl":
				if i == "x" {
					i = quoted("i")
				}
				fmt.Fprintf(&b, `{"id":%s,"i":%s,"d":%s,"p":%s,"a":%s}`+"\n", id, i, quoted("d"), cell("p"),
					cell("a"))
				continue
			case "csv", "tsv":
				if r == 0 {
					b.WriteString("id,i,d,p,a\n")
				}
				list := strings.ReplaceAll(cell("a"), `"`, `''`)
				fmt.Fprintf(&b, "%s,%s,%s,%s,'%s'\n", id, i, cell("d"), cell("p"), list)
			}
		}
		text := b.String()
		if form == "csv" {
			text = strings.ReplaceAll(text, "'", `"`)
		} else if form == "tsv" { // the cells have no comma of their own but that of a
			text = strings.ReplaceAll(strings.ReplaceAll(text, "1,2", "1;2"), ",", "\t")
			text = strings.ReplaceAll(strings.ReplaceAll(text, "1;2", "1,2"), "'", `"`)
		}
		name := filepath.Join(dir, fmt.Sprintf("%d.%s", f, form))
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// TestBadPlaces: what a load does with a bad row, and its status, are the same wherever the row is: in whichever file,
// among the rows from which types are guessed or after them. Without an action the error names the file and the row.
func TestBadPlaces(t *testing.T) {
	const n = 1003 // types are guessed from 1000 rows
	of := []struct{ form, column, option string }{{"csv", "i", "header=true"}, {"csv", "i", ""}, {"csv", "a", ""},
		{"csv", "p", "header=true"}, {"tsv", "d", ""}, {"tsv", "p", ""}, {"jsonl", "i", ""}, {"jsonl", "a", ""},
		{"jsonl", "p", "types=infer"}}
	if testing.Short() {
		of = of[:1]
	}
	for _, of := range of {
		for place := range 9 {
			file, row := place/3, []int{0, 1001, n - 1}[place%3]
			option := strings.ReplaceAll(of.option, "=", " ")
			t.Run(fmt.Sprintf("%s/%s/%s/%d,%d", of.form, of.column, option, file, row), func(t *testing.T) {
				dir := t.TempDir()
				names := badPlaces(t, dir, of.form, of.column, n, file, row)
				place := fmt.Sprintf("%s: row %d: column %s: ", names[file], row, of.column)
				checkBadPlace(t, dir, names, of.column, of.option, file*n+row, place)
			})
		}
	}
}

// checkBadPlace loads texts of 3009 rows, in which the one with the given id has a bad value in column.
func checkBadPlace(t *testing.T, dir string, names []string, column, option string, id int, place string) {
	table, types := filepath.Join(dir, "t"), filepath.Join(dir, "types.txt")
	if err := os.WriteFile(types, []byte("id int\ni int\nd date\np decimal(6,2)\na array<int>\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	told(t, "create "+table+" --schema "+types)
	rejected := filepath.Join(dir, "bad.jsonl")
	left := 0 // rows of the table
	counts := func(what string, want int, where string) {
		if _, got, _ := told(t, "count "+where); strings.TrimSpace(got) != strconv.Itoa(want) {
			t.Errorf("%s: got %s, want %d", what, got, want)
		}
	}
	for _, c := range []struct {
		action                string
		status, rows, strange int
	}{{"", cli.StatusCannot, 0, 0}, {"fail", cli.StatusCannot, 0, 0}, {"ignore", cli.StatusFine, 3008, 0},
		{"force", cli.StatusFine, 3009, 1}, {"redirect --bad-records " + rejected, cli.StatusFine, 3008, 1}} {
		line := "load " + table + " " + strings.Join(names, " ")
		if option != "" {
			line += " --source-opt " + option
		}
		if c.action != "" {
			line += " --bad-action " + c.action
		}
		st, _, said := told(t, line)
		if st != c.status || st == cli.StatusCannot && !strings.Contains(said, place) ||
			st == cli.StatusFine && !strings.Contains(said, fmt.Sprintf("row %d of all files: column %s: ", id,
				column)) {
			t.Errorf("%q: got %d, %s", c.action, st, said)
		}
		left += c.rows
		counts(c.action+": rows", left, table)
		counts(c.action+": nulls", c.strange, table+" --where "+column+"_is_null")
	}
	counts("bad rows", 1, rejected)
	counts("the bad row", 1, table+fmt.Sprintf(" --where id_=_%d", id))
}
