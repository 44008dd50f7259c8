// Package places has CarbonData under Spark and stoa change the same tables in a remote store in turn, and compares
// what each of them reads with a model. It is used by the tests of the stores.
package places

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Judge is where the tables are and how they are reached.
type Judge struct {
	T     *testing.T
	Stoa  func(args ...string) (said string, status int)
	Place string // of the tables, as an address of stoa
	Store string // the same, as an address of Hadoop
	Conf  string // a folder with Hadoop's core-site.xml

	tables     map[string]table
	dir        string
	rows, asks int
}

type cells = map[string]any

// table is the expected content: rows by id.
type table map[int]cells

const columns = "id int\nname string\namount decimal(10,2)\nday date\nratio double\nflag boolean\n"

// row returns row i, with nulls in some columns.
func row(i int) cells {
	c := cells{"id": i, "ratio": float64(i) / 8, "flag": i%3 == 0, "day": fmt.Sprintf("2021-03-%02d", 1+i%28)}
	if i%10 != 0 {
		c["name"] = fmt.Sprint("n", i%7, "/é y")
	}
	if i%13 != 0 {
		c["amount"] = fmt.Sprintf("%d.%02d", i%1000, i%100)
	}
	if i%11 == 0 {
		delete(c, "ratio")
		delete(c, "day")
	}
	return c
}

// canonical returns a row as a text: members sorted, without nulls, numbers as fractions.
func canonical(c cells) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c)) {
		if c[k] == nil {
			continue
		}
		text := fmt.Sprint(c[k])
		if r, ok := new(big.Rat).SetString(text); ok {
			text = r.RatString()
		}
		fmt.Fprintf(&b, "%s=%q ", k, text)
	}
	return b.String()
}

func (t table) lines() (out []string) {
	for _, c := range t {
		out = append(out, canonical(c))
	}
	slices.Sort(out)
	return out
}

func (j *Judge) file(name string, b []byte) string {
	name = filepath.Join(j.dir, name)
	if err := os.WriteFile(name, b, 0o666); err != nil {
		j.T.Fatal(err)
	}
	return name
}

// run runs stoa, which must succeed.
func (j *Judge) run(args ...string) string {
	j.T.Helper()
	said, status := j.Stoa(args...)
	if status != 0 {
		j.T.Fatalf("stoa %s: status %d: %s", strings.Join(args, " "), status, said)
	}
	return said
}

func (j *Judge) create(name string, args ...string) {
	j.T.Helper()
	schema := j.file("columns.txt", []byte(columns))
	j.run(append([]string{"create", j.Place + "/" + name, "--schema", schema}, args...)...)
	j.tables[name] = table{}
}

func (j *Judge) load(name string, from, to int, args ...string) {
	j.T.Helper()
	var b bytes.Buffer
	for i := from; i < to; i++ {
		line, err := json.Marshal(row(i))
		if err != nil {
			j.T.Fatal(err)
		}
		b.Write(append(line, '\n'))
		j.tables[name][i] = row(i)
	}
	j.run(append([]string{"load", j.Place + "/" + name, j.file("rows.jsonl", b.Bytes())}, args...)...)
}

// remove removes rows of the model.
func (j *Judge) remove(name string, gone func(i int) bool) {
	maps.DeleteFunc(j.tables[name], func(i int, _ cells) bool { return gone(i) })
}

// compare compares rows as JSON lines with a table.
func (j *Judge) compare(who, name string, lines []string) {
	j.T.Helper()
	got := []string{}
	for _, l := range lines {
		d := json.NewDecoder(strings.NewReader(l))
		d.UseNumber()
		var c cells
		if err := d.Decode(&c); err != nil {
			j.T.Errorf("%s: %s: %s", who, name, l)
			return
		}
		got = append(got, canonical(c))
	}
	slices.Sort(got)
	want := j.tables[name].lines()
	j.rows += len(got)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			j.T.Errorf("%s: %s: got %d rows, want %d; row %d: got %q, want %q", who, name, len(got), len(want), i,
				got[i:min(i+1, len(got))], want[i:min(i+1, len(want))])
			return
		}
	}
}

// ours has stoa read and verify every table.
func (j *Judge) ours() {
	j.T.Helper()
	for _, name := range slices.Sorted(maps.Keys(j.tables)) {
		said := j.run("cat", "-q", "-f", "jsonl", "--unordered", j.Place+"/"+name)
		j.compare("stoa", name, strings.FieldsFunc(said, func(r rune) bool { return r == '\n' }))
		j.run("verify", j.Place+"/"+name)
	}
}

// spark has Spark do the statements and then read every table.
func (j *Judge) spark(statements ...string) {
	j.T.Helper()
	sql := slices.Clone(statements)
	names := slices.Sorted(maps.Keys(j.tables))
	for _, name := range names {
		sql = append(sql, "select id, name, cast(amount as string) amount, cast(day as string) day, ratio, flag from "+
			name)
		sql = append(sql, "select count(*) n from "+name+" where name = 'n3/é y'",
			"select count(*) n from "+name+" where id >= 90 and id < 110")
	}
	answers := j.ask(sql)
	for i, s := range statements {
		if a := answers[i]; len(a) > 0 && strings.HasPrefix(a[len(a)-1], "!! ") {
			j.T.Fatalf("Spark: %s\n%s", s, strings.Join(a, "\n"))
		}
	}
	for i, name := range names {
		a := answers[len(statements)+3*i:]
		j.compare("Spark", name, a[0])
		named, between := 0, 0
		for id, c := range j.tables[name] {
			if c["name"] == "n3/é y" {
				named++
			}
			if id >= 90 && id < 110 {
				between++
			}
		}
		for k, n := range []int{named, between} {
			if want := fmt.Sprintf(`{"n":%d}`, n); len(a[k+1]) != 1 || a[k+1][0] != want {
				j.T.Errorf("Spark: %s: a filtered count: got %q, want %s", name, a[k+1], want)
			}
		}
	}
}

// ask runs statements in a new process of Spark.
func (j *Judge) ask(sql []string) (answers [][]string) {
	j.T.Helper()
	j.asks += len(sql)
	cmd := exec.Command("../carbon-spark/sql.sh", j.Store, j.file("sql", []byte(strings.Join(sql, "\n")+"\n")))
	cmd.Env = append(os.Environ(), "JUDGE_CONF="+j.Conf)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if strings.HasPrefix(s.Text(), "== ") {
			answers = append(answers, nil)
		} else if n := len(answers); n > 0 {
			answers[n-1] = append(answers[n-1], s.Text())
		}
	}
	if err != nil || len(answers) != len(sql) {
		said := stderr.String()
		j.T.Fatalf("%d of %d statements: %v\n%s", len(answers), len(sql), err, said[max(0, len(said)-6000):])
	}
	return answers
}

// insert is a statement that inserts a row, whose day comes last if the table is partitioned by it.
func (j *Judge) insert(name string, id int, last bool) string {
	j.tables[name][id] = cells{"id": id, "name": "by spark", "amount": "12.50", "day": "2021-06-07", "ratio": 0.375,
		"flag": true}
	rest := "date'2021-06-07', cast(0.375 as double), true"
	if last {
		rest = "cast(0.375 as double), true, date'2021-06-07'"
	}
	return fmt.Sprintf("insert into %s select cast(%d as int), 'by spark', cast(12.50 as decimal(10,2)), %s", name, id,
		rest)
}

// Run makes and changes tables by both in turn.
func (j *Judge) Run() {
	j.T.Helper()
	j.dir, j.tables = j.T.TempDir(), map[string]table{}
	place := func(name string) string { return j.Place + "/" + name }
	j.create("empty")
	for name, args := range map[string][]string{"plain": nil, "sorted": {"--sort-columns", "name,id"},
		"parts": {"--partition", "day"}, "changed": {"--sort-columns", "id"}, "merged": nil} {
		j.create(name, args...)
		for i := range 3 {
			j.load(name, 100*i, 100*i+100)
		}
	}
	j.run("delete", place("changed"), "--where", "id >= 50 and id < 120")
	j.run("update", place("changed"), "--set", "name=new", "--set", "amount=null", "--where", "id >= 40 and id < 45")
	j.run("delete", place("changed"), "--segment", "2")
	j.remove("changed", func(i int) bool { return i >= 50 && i < 120 || i >= 200 })
	for i := 40; i < 45; i++ {
		j.tables["changed"][i]["name"] = "new"
		delete(j.tables["changed"][i], "amount")
	}
	j.run("delete", place("merged"), "--where", "id < 30")
	j.remove("merged", func(i int) bool { return i < 30 })
	j.run("compact", place("merged"), "--major")
	j.run("clean", place("merged"), "--older-than", "-1m")
	j.ours()

	j.tables["native"] = table{}
	statements := []string{"create table native (id int, name string, amount decimal(10,2), day date, ratio double, " +
		"flag boolean) stored as carbondata tblproperties('sort_columns'='id')"}
	for i, name := range []string{"empty", "plain", "sorted", "changed", "merged", "parts", "native"} {
		statements = append(statements, j.insert(name, 9000+i, name == "parts"))
	}
	statements = append(statements, "delete from changed where id between 10 and 20",
		"delete from parts where id = 101", "update plain set (name) = ('updated') where id = 33",
		"alter table sorted compact 'major'")
	j.remove("changed", func(i int) bool { return i >= 10 && i <= 20 })
	j.remove("parts", func(i int) bool { return i == 101 })
	j.tables["plain"][33]["name"] = "updated"
	j.spark(statements...)
	j.ours()

	for _, name := range []string{"empty", "plain", "sorted", "changed", "merged", "parts", "native"} {
		j.load(name, 10_000, 10_020)
	}
	j.run("delete", place("plain"), "--where", "id = 9001 or id = 5")
	j.remove("plain", func(i int) bool { return i == 9001 || i == 5 })
	j.run("compact", place("changed"), "--major")
	j.run("update", place("native"), "--set", "name=ours", "--where", "id = 9006")
	j.tables["native"][9006]["name"] = "ours"
	j.ours()
	j.spark()
	j.again("merged")
	j.T.Logf("COUNT %d CarbonData tables changed by Spark and stoa in turn at %s, %d statements, %d rows compared",
		len(j.tables), j.Store[:strings.Index(j.Store, ":")], j.asks, j.rows)
}

// again drops a table and creates another one of its name.
func (j *Judge) again(name string) {
	j.T.Helper()
	j.run("drop", j.Place+"/"+name, "--yes")
	if said, status := j.Stoa("ls", j.Place+"/"+name); status == 0 && strings.Contains(said, "carbon") {
		j.T.Errorf("after drop: %s", said)
	}
	j.create(name)
	j.load(name, 0, 3)
	j.ours()
}
