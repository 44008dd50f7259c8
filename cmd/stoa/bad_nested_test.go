package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// told runs a command line, in which _ in a predicate at its end stands for a space, and returns its status and
// output.
func told(t *testing.T, line string) (st int, out, stderr string) {
	t.Helper()
	args := strings.Fields(line)
	if k := len(args) - 2; k > 0 && args[k] == "--where" {
		args[k+1] = strings.ReplaceAll(args[k+1], "_", " ")
	}
	var o, e bytes.Buffer
	st = run(context.Background(), args, nil, &o, &e)
	return st, o.String(), e.String()
}

// TestBadNested: a row with a text that is no value of a nested or binary column is a bad row as any other. It is left
// out, loaded with null, or written to the file as it came, and nothing else is, whichever column and form of text it
// is, alone or with others in its row.
func TestBadNested(t *testing.T) {
	cells := map[string][2]string{ // of each column, a good value and a bad one, as JSON
		"a": {`[1,2]`, `[1,"x"]`}, "s": {`{"x":1,"y":"q"}`, `{"x":5000000000,"y":"q"}`},
		"m": {`[{"key":"k","value":1}]`, `[{"key":"k","value":"v"}]`}, "b": {`"AQI="`, `"###"`}, "i": {`7`, `"u"`}}
	columns := []string{"a", "s", "m", "b", "i"}
	dir := t.TempDir()
	write := func(name, text string) string {
		full := filepath.Join(dir, name)
		if err := os.WriteFile(full, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return full
	}
	types := write("types.txt", "id int\na array<int>\ns struct<x:int,y:string>\nm map<string,int>\nb binary\ni int\n")
	lines, csv := "", "id,a,s,m,b,i\n"
	good, bad, rows := "", "", 0
	for set := range 1 << len(columns) { // which columns are bad
		rows++
		line, fields := fmt.Sprintf(`{"id":%d`, set), fmt.Sprint(set)
		for k, c := range columns {
			v := cells[c][set>>k&1]
			line += fmt.Sprintf(`,"%s":%s`, c, v)
			if c == "b" || c == "i" {
				v = strings.Trim(v, `"`)
			}
			fields += `,"` + strings.ReplaceAll(v, `"`, `""`) + `"`
		}
		lines, csv = lines+line+"}\n", csv+fields+"\n"
		if set == 0 || set == 1<<len(columns)-1 { // good rows between bad ones
			id := fmt.Sprintf("%d,", 100+set)
			lines += strings.Replace(strings.SplitAfter(lines, "\n")[0], "0,", id, 1)
			csv += strings.Replace(strings.SplitAfter(csv, "\n")[1], "0,", id, 1)
			good += fmt.Sprintf("%d\n", 100+set)
			rows++
		}
		if set > 0 {
			bad += fmt.Sprintf("%d\n", set)
		}
	}
	good = "0\n" + good
	ids := func(name string) string {
		_, shown, _ := told(t, "cat "+name+" --columns id -f csv")
		_, out, _ := strings.Cut(shown, "\n")
		return out
	}
	for _, from := range []string{write("rows.jsonl", lines), write("rows.csv", csv)} {
		more := ""
		if strings.HasSuffix(from, ".csv") {
			more = " --source-opt header=true"
		}
		for _, action := range []string{"ignore", "force", "redirect"} {
			where := action + filepath.Ext(from)
			table, file := filepath.Join(dir, "t-"+where), filepath.Join(dir, "bad-"+where)
			told(t, "create "+table+" --schema "+types)
			line := "load " + table + " " + from + more + " --bad-action " + action
			if action == "redirect" {
				line += " --bad-records " + file
			}
			for _, dry := range []string{" --dry-run", ""} {
				st, _, said := told(t, line+dry)
				want := fmt.Sprintf("%d bad rows", 1<<len(columns)-1)
				if st != cli.StatusFine || !strings.Contains(said, want) {
					t.Fatalf("%s%s: got %d, %q, want %s", where, dry, st, said, want)
				}
			}
			if got := ids(table); action != "force" && got != good {
				t.Errorf("%s: the table has rows %q, want %q", where, got, good)
			}
			if action == "redirect" {
				if got := ids(file); got != bad {
					t.Errorf("%s: the file has rows %q, want %q", where, got, bad)
				}
			}
			for k, c := range columns { // nulls are where the bad values were
				if action != "force" {
					break
				}
				_, got, _ := told(t, "count "+table+" --where "+c+"_is_null")
				got = strings.TrimSpace(got)
				if want := fmt.Sprint(1 << (len(columns) - 1)); got != want {
					t.Errorf("%s: column %d, %s: %s nulls, want %s", where, k, c, got, want)
				}
			}
		}
	}
}
