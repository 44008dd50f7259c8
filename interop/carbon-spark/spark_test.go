//go:build interop

package carbonspark

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/carbon"
)

// warehouse is a directory of tables, their expected rows, and the command that makes them.
type warehouse struct {
	t      *testing.T
	dir    string // of the tables
	work   string
	stoa   string
	tables map[string]table
	names  []string
	asked  int // statements that Spark answered
	rows   int // rows that were compared
}

func newWarehouse(t *testing.T) *warehouse {
	h := &warehouse{t: t, dir: filepath.Join(t.TempDir(), "store"), work: t.TempDir(), tables: map[string]table{}}
	h.stoa = filepath.Join(h.work, "stoa")
	if out, err := exec.Command("go", "build", "-o", h.stoa, "stoa/cmd/stoa").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.write("columns.txt", []byte(columns))
	return h
}

func (h *warehouse) write(name string, b []byte) string {
	name = filepath.Join(h.work, name)
	if err := os.WriteFile(name, b, 0o666); err != nil {
		h.t.Fatal(err)
	}
	return name
}

func (h *warehouse) path(table string) string { return filepath.Join(h.dir, table) }

// run runs stoa.
func (h *warehouse) run(args ...string) string {
	h.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(h.stoa, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		h.t.Fatalf("stoa %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// create makes a table; load adds rows to it.
func (h *warehouse) create(name string, args ...string) {
	h.t.Helper()
	h.run(append([]string{"create", h.path(name), "--schema", filepath.Join(h.work, "columns.txt")}, args...)...)
	h.tables[name] = table{}
	h.names = append(h.names, name)
}

func (h *warehouse) load(name string, from, to int, args ...string) {
	h.t.Helper()
	h.run(append([]string{"load", h.path(name), h.write("rows.jsonl", jsonl(from, to))}, args...)...)
	h.tables[name].add(from, to)
}

// spark runs statements and returns their answers. It calls seen, if not nil, when the answer of one begins.
func (h *warehouse) spark(statements []string, seen func(n int)) (answers [][]string) {
	h.t.Helper()
	cmd := exec.Command("./sql.sh", h.dir, h.write("sql", []byte(strings.Join(statements, "\n")+"\n")))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	for s := bufio.NewScanner(out); s.Scan(); {
		if n := len(answers); strings.HasPrefix(s.Text(), "== ") {
			if answers = append(answers, nil); seen != nil {
				seen(n)
			}
		} else {
			answers[n-1] = append(answers[n-1], s.Text())
		}
	}
	if err := cmd.Wait(); err != nil || len(answers) != len(statements) {
		h.t.Fatalf("%d of %d statements: %v\n%s", len(answers), len(statements), err, &stderr)
	}
	h.asked += len(statements)
	return answers
}

// question is a statement with its expected answer.
type question struct {
	sql   string
	want  []string
	fails bool // it must fail
}

// ask runs the questions in Spark, and compares the answers.
func (h *warehouse) ask(list []question, seen func(n int)) {
	h.t.Helper()
	var sql []string
	for _, q := range list {
		sql = append(sql, q.sql)
	}
	for i, a := range h.spark(sql, seen) {
		q := list[i]
		if failed := len(a) > 0 && strings.HasPrefix(a[len(a)-1], "!! "); failed != q.fails {
			h.t.Errorf("%s\n%s", q.sql, strings.Join(a, "\n"))
			continue
		}
		if q.want == nil {
			continue
		}
		got, err := parse(a)
		if err != nil {
			h.t.Errorf("%s: %v", q.sql, err)
			continue
		}
		if h.rows += len(got); differ(got, q.want) != "" {
			h.t.Errorf("%s: %s", q.sql, differ(got, q.want))
		}
	}
}

// reading returns questions for all rows of a table, for some counts and for a join.
func (h *warehouse) reading(name string) (out []question) {
	t := h.tables[name]
	count := func(where string, pass func(c cells) bool) {
		n := t.count(pass)
		out = append(out, question{sql: fmt.Sprintf("select count(*) n from %s where %s", name, where),
			want: []string{canonical(cells{"n": n})}})
	}
	out = append(out, question{sql: fmt.Sprintf("select * from %s order by id", name), want: t.lines()})
	count("name = 'n3/é y'", func(c cells) bool { return c["name"] == "n3/é y" })
	count("name is null", func(c cells) bool { return c["name"] == nil })
	day := row(2)["day"]
	count(fmt.Sprintf("day = '%s' and id > 20", day),
		func(c cells) bool { return c["day"] == day && c["id"].(int) > 20 })
	count("id between 90 and 110", func(c cells) bool { return c["id"].(int) >= 90 && c["id"].(int) <= 110 })
	// CarbonData cannot do this: it filters each file of a scan by itself, and after a measure was dropped it
	// uses a later measure's number in one file for another file
	if name != "evolved" {
		count("ratio < 3", func(c cells) bool { f, ok := c["ratio"].(float64); return ok && f < 3 })
	}
	pairs, of := 0, map[any]int{}
	for _, c := range t {
		if c["name"] != nil {
			of[c["name"]]++
		}
	}
	for _, n := range of {
		pairs += n * n
	}
	if len(t) < 1000 { // for bucketed tables a join without a shuffle
		out = append(out, question{sql: fmt.Sprintf(
			"select count(*) n from %[1]s a join %[1]s b on a.name = b.name", name),
			want: []string{canonical(cells{"n": pairs})}})
	}
	return out
}

// ours has stoa read and verify the tables.
func (h *warehouse) ours() {
	h.t.Helper()
	for _, name := range h.names {
		lines := strings.Split(strings.TrimSuffix(h.run("cat", h.path(name), "-f", "jsonl", "--unordered"), "\n"), "\n")
		got, err := parse(lines)
		if err != nil {
			h.t.Fatal(err)
		}
		want := h.tables[name].lines()
		slices.Sort(got)
		slices.Sort(want)
		if d := differ(got, want); d != "" {
			h.t.Errorf("%s: stoa: %s", name, d)
		}
		h.rows += len(got)
		h.run("verify", h.path(name))
	}
}

// sparkRow returns a row that Spark adds, and its values as SQL, by column.
func sparkRow(id int) (cells, map[string]string) {
	return cells{"id": id, "name": "by spark", "amount": "12.50", "day": "2021-06-07",
			"at": "2021-06-07T08:09:10.000Z", "ratio": 0.375, "small": -3, "big": int64(1) << 50,
			"flag": true, "tags": []any{"a", "b"}},
		map[string]string{"id": fmt.Sprint("cast(", id, " as int)"), "name": "'by spark'",
			"amount": "cast(12.50 as decimal(10,2))", "day": "date'2021-06-07'", "at": "timestamp'2021-06-07 08:09:10'",
			"ratio": "cast(0.375 as double)", "small": "cast(-3 as smallint)",
			"big": "cast(1125899906842624 as bigint)", "flag": "true", "tags": "array('a','b')"}
}

// insert is a statement that adds a row. gone are the columns that the table no longer has, more the values of the
// added columns, and last the columns at its end.
func (h *warehouse) insert(name string, id int, gone, more []string, last ...string) question {
	c, sql := sparkRow(id)
	var order []string
	for line := range strings.Lines(columns) {
		col, _, _ := strings.Cut(line, " ")
		if !slices.Contains(last, col) && !slices.Contains(gone, col) {
			order = append(order, sql[col])
		}
	}
	order = append(order, more...)
	for _, col := range last {
		order = append(order, sql[col])
	}
	for _, col := range gone {
		delete(c, col)
	}
	h.tables[name][id] = c
	return question{sql: fmt.Sprintf("insert into %s select %s", name, strings.Join(order, ", "))}
}

// TestSpark has Spark read what stoa made and changed, then change it, then stoa read and change that, then
// Spark again.
func TestSpark(t *testing.T) {
	h := newWarehouse(t)
	loads := func(name string) {
		for i := range 3 {
			h.load(name, 100*i, 100*i+100)
		}
	}
	h.create("plain")
	loads("plain")
	h.create("sorted", "--sort-columns", "name,day", "--inverted-index", "name")
	loads("sorted")
	h.create("buckets", "--bucket", "4:name")
	loads("buckets")
	h.create("buckets2", "--bucket", "3:name,id", "--sort-columns", "id")
	loads("buckets2")
	h.create("parts", "--partition", "name,day")
	loads("parts")
	h.create("parts2", "--partition", "day", "--sort-columns", "name", "--property", "local_dictionary_enable=false")
	loads("parts2")
	h.create("large", "--sort-columns", "id")
	h.load("large", 0, 40_000, "--memory", "1MB", "--parallel", "2")
	h.create("zstd", "--property", "carbon.column.compressor=zstd")
	loads("zstd")

	h.create("changed", "--sort-columns", "name")
	loads("changed")
	h.run("delete", h.path("changed"), "--where", "id >= 50 and id < 120")
	h.run("delete", h.path("changed"), "--where", "id = 7")
	h.run("update", h.path("changed"), "--set", "name=new", "--set", "amount=null", "--where", "id >= 40 and id < 45")
	h.run("delete", h.path("changed"), "--segment", "2")
	c := h.tables["changed"]
	for i := range c {
		if i >= 50 && i < 120 || i == 7 || i >= 200 {
			delete(c, i)
		} else if i >= 40 && i < 45 {
			c[i]["name"] = "new"
			delete(c[i], "amount")
		}
	}
	for _, name := range []string{"merged", "cleaned"} {
		h.create(name)
		loads(name)
		h.load(name, 300, 400)
		h.run("delete", h.path(name), "--where", "id >= 10 and id < 150")
		h.run("compact", h.path(name), "--minor")
		h.load(name, 400, 450)
		h.run("delete", h.path(name), "--where", "id = 5 or id = 444")
		for i := range h.tables[name] {
			if i >= 10 && i < 150 || i == 5 || i == 444 {
				delete(h.tables[name], i)
			}
		}
	}
	h.run("clean", h.path("cleaned"))

	h.create("evolved")
	h.load("evolved", 0, 50)
	h.run("add-column", h.path("evolved"), "extra", "decimal(8,3)", "--default", "1.5")
	h.run("add-column", h.path("evolved"), "since", "date")
	h.run("drop-column", h.path("evolved"), "amount")
	h.load("evolved", 51, 52, "-c", "id,name,day,at,ratio,small,big,flag,tags")
	for i, c := range h.tables["evolved"] {
		delete(c, "amount")
		if i < 50 {
			c["extra"] = "1.5"
		}
	}
	h.ours()

	// A load of ours is in progress while Spark reads and loads.
	h.create("during")
	h.load("during", 0, 100)
	going, batch := begin(t, h.path("during"))

	var list []question
	for _, name := range h.names {
		list = append(list, h.reading(name)...)
	}
	states := func(name string, want ...string) { // newest first
		q := question{sql: "show segments on " + name + " as select id, status from " + name + "_segments"}
		for _, s := range want {
			id, status, _ := strings.Cut(s, " ")
			q.want = append(q.want, canonical(cells{"id": id, "status": status}))
		}
		list = append(list, q)
	}
	states("changed", "3 Success", "2 Marked for Delete", "1 Success", "0 Success")
	states("merged", "4 Success", "3 Compacted", "2 Compacted", "1 Compacted", "0.1 Success", "0 Compacted")
	states("cleaned", "4 Success", "0.1 Success")
	states("during", "1 Insert In Progress", "0 Success")

	list = append(list, h.merged()...)
	natives := h.natives(&list)

	// The changes by Spark.
	insertAt := len(list)
	for _, name := range h.names {
		switch name {
		case "parts":
			list = append(list, h.insert(name, 90_000_001, nil, nil, "name", "day"))
		case "parts2":
			list = append(list, h.insert(name, 90_000_001, nil, nil, "day"))
		case "evolved":
			list = append(list, h.insert(name, 90_000_001, []string{"amount"},
				[]string{"cast(2.25 as decimal(8,3))", "date'2020-02-02'"}))
			h.tables[name][90_000_001]["extra"], h.tables[name][90_000_001]["since"] = "2.25", "2020-02-02"
		default:
			list = append(list, h.insert(name, 90_000_001, nil, nil))
		}
	}
	remove := func(name string, where string, gone func(i int) bool) {
		list = append(list, question{sql: fmt.Sprintf("delete from %s where %s", name, where)})
		for i := range h.tables[name] {
			if gone(i) {
				delete(h.tables[name], i)
			}
		}
	}
	remove("changed", "id between 20 and 30 or id = 41", func(i int) bool { return i >= 20 && i <= 30 || i == 41 })
	remove("merged", "id = 200", func(i int) bool { return i == 200 })
	remove("buckets", "id < 100", func(i int) bool { return i < 100 })
	remove("parts", "id = 101", func(i int) bool { return i == 101 })
	list = append(list, question{sql: "update plain set (big) = (77) where id = 33"},
		question{sql: "alter table sorted compact 'minor'"})
	h.tables["plain"][33]["big"] = 77

	// Spark does not change a table that we are changing: we hold the lock.
	unlock, err := carbon.LockUpdate(t.Context(), h.path("zstd"))
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, question{sql: "delete from zstd where id = 1", fails: true})

	inProgress := make(chan string, 1)
	h.ask(list, func(n int) {
		if n == insertAt { // the first table's
			go func() { inProgress <- watch(filepath.Join(h.path(h.names[0]), "Metadata", "tablestatus")) }()
		}
	})
	unlock()
	select {
	case s := <-inProgress:
		t.Logf("COUNT 1 tablestatus of a load by CarbonData in progress, with the state %s", s)
		if s != `"In Progress"` {
			t.Errorf("the state of a load in progress: expected \"In Progress\", got %s", s)
		}
	case <-time.After(time.Minute):
		t.Error("no load by CarbonData was seen in progress")
	}
	if err := going.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if _, err := going.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.tables["during"][5000] = cells{"id": 5000}
	h.names = append(h.names, natives...) // Spark has made them by now
	h.ours()

	// Another round: our changes, then Spark's reading.
	for _, name := range h.names {
		if name == "evolved" {
			continue
		}
		h.load(name, 10_000_000, 10_000_020)
	}
	for _, name := range []string{"buckets", "changed", "parts2", "sorted"} {
		h.run("compact", h.path(name), "--major")
		h.run("clean", h.path(name))
	}
	h.run("delete", h.path("plain"), "--where", "id = 90000001")
	delete(h.tables["plain"], 90_000_001)
	for _, name := range natives {
		h.alter(name)
	}
	h.ours()
	list = nil
	for _, name := range h.names {
		list = append(list, h.reading(name)...)
	}
	h.ask(list, nil)
	t.Logf("COUNT %d tables, %d statements answered by CarbonData under Spark, %d rows compared", len(h.names),
		h.asked, h.rows)
}

// natives has Spark make tables with rows of its own.
func (h *warehouse) natives(list *[]question) []string {
	of := func(without string) string {
		var out []string
		for line := range strings.Lines(columns) {
			if col, _, _ := strings.Cut(line, " "); col != without {
				out = append(out, strings.TrimSpace(line))
			}
		}
		return strings.Join(out, ", ")
	}
	*list = append(*list,
		question{sql: fmt.Sprintf("create table native (%s) stored as carbondata "+
			"tblproperties('sort_columns'='name,day','sort_scope'='local_sort','comment'='of Spark')", of(""))},
		question{sql: fmt.Sprintf("create table native_parts (%s) partitioned by (day date) stored as "+
			"carbondata tblproperties('sort_columns'='id')", of("day"))})
	h.tables["native"], h.tables["native_parts"] = table{}, table{}
	for i := range 3 {
		*list = append(*list, h.insert("native", 80_000_000+i, nil, nil),
			h.insert("native_parts", 80_000_000+i, nil, nil, "day"))
	}
	return []string{"native", "native_parts"}
}

// alter has stoa change the columns of a table that Spark made, load and delete rows, and compact it.
func (h *warehouse) alter(name string) {
	h.run("delete", h.path(name), "--where", "id = 80000001 or id = 10000003")
	h.run("add-column", h.path(name), "extra", "decimal(8,3)", "--default", "1.5")
	h.run("add-column", h.path(name), "since", "date")
	h.run("drop-column", h.path(name), "big")
	t := h.tables[name]
	delete(t, 80_000_001)
	delete(t, 10_000_003)
	for _, c := range t {
		delete(c, "big")
		c["extra"] = "1.5"
	}
	h.load(name, 20_000_000, 20_000_030, "-c", "id,name,amount,day,at,ratio,small,flag,tags")
	h.run("delete", h.path(name), "--where", "id = 20000007")
	delete(t, 20_000_007)
	for id, c := range t {
		if id >= 20_000_000 && id < 20_000_030 {
			delete(c, "big")
		}
	}
	h.run("compact", h.path(name), "--minor")
}

// merged has stoa merge the index files of two tables that Spark wrote with one each, and asks for their rows.
func (h *warehouse) merged() (out []question) {
	for name, days := range map[string]int{"plain": 60, "parts": 3} {
		dir := h.path("single_" + name)
		if err := os.CopyFS(dir, os.DirFS("../../format/carbon/testdata/single_index/"+name)); err != nil {
			h.t.Fatal(err)
		}
		h.run("merge-index", dir)
		if l, err := filepath.Glob(filepath.Join(dir, "*/*/*/*.carbonindex")); err != nil || len(l) > 0 {
			h.t.Error(l, err)
		}
		h.run("verify", dir)
		q := question{sql: "select * from single_" + name + " order by id"}
		for i := range map[string]int{"plain": 60, "parts": 40}[name] {
			q.want = append(q.want, canonical(cells{"id": i, "name": fmt.Sprint("n", i%7),
				"day": time.Date(2020, 1, 1+i%days, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)}))
		}
		out = append(out, q)
	}
	return out
}

// begin begins a load of one row.
func begin(t *testing.T, dir string) (*carbon.Load, arrow.RecordBatch) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	b.Field(0).(*array.Int32Builder).Append(5000)
	l, err := carbon.BeginLoad(t.Context(), dir, sc, carbon.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l, b.NewRecordBatch()
}

// watch waits until tablestatus has an entry of a load in progress, and returns its state.
func watch(name string) string {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(name)
		var list []struct {
			Status json.RawMessage `json:"loadStatus"`
		}
		if err != nil || json.Unmarshal(b, &list) != nil {
			continue
		}
		for _, e := range list {
			if strings.Contains(string(e.Status), "Progress") {
				return string(e.Status)
			}
		}
	}
	return "none"
}
