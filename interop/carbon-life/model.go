//go:build interop

package carbonlife

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// column is a column of a table.
type column struct {
	name, kind string // the type in Spark's SQL
}

// cell is a value, as in JSON lines and as a constant of SQL. A null has a nil value.
type cell struct {
	value any
	sql   string
}

// row is the cells of a row, by column.
type row map[string]cell

// table is the expected content of a table: rows by id. The partition column, if there is one, is the last one.
type table struct {
	name      string
	dir       string // of its directory; CarbonData's rename leaves it
	columns   []column
	partition string // "": none
	sorted    []string
	bucketed  string
	ranged    string // the range column; "": none
	rows      map[int]row
	next      int             // the next id
	made      int             // columns added or renamed, and places added
	altered   bool            // some files have other columns than the table
	measures  bool            // a measure was dropped
	known     map[string]bool // partitions that Hive's metastore knows
	external  bool            // some files are outside the directory
	places    []string        // the directories outside

	dependents bool // stoa's changes would make others out of date
}

// flags returns the arguments of a command on the table.
func (t *table) flags(args ...string) []string {
	if t.external && args[0] != "schema" {
		args = append(args, "--allow-external")
	}
	if t.dependents && !slices.Contains([]string{"cat", "schema", "verify"}, args[0]) {
		args = append(args, "--disable-dependents")
	}
	return args
}

// equal reports whether two cells have the same value, of whatever types; nulls are equal.
func equal(a, b cell) bool {
	if a.value == nil || b.value == nil {
		return a.value == nil && b.value == nil
	}
	return text(a.value) == text(b.value)
}

func null(kind string) cell { return cell{sql: "cast(null as " + kind + ")"} }

// draw draws a value. Booleans and arrays are never null: after a delete CarbonData reads null booleans as false, and
// its updates refuse rows with null arrays as bad records.
func draw(r *rand.Rand, kind string) cell {
	if r.IntN(6) == 0 && kind != "boolean" && kind != "array<string>" {
		return null(kind)
	}
	n := r.IntN(2000) - 1000
	number := func() cell { return cell{n, fmt.Sprintf("cast(%d as %s)", n, kind)} }
	switch kind {
	case "string":
		s := fmt.Sprintf("s%d é/=%%", r.IntN(9))
		return cell{s, "'" + s + "'"}
	case "int", "smallint":
		return number()
	case "bigint":
		n := int64(n) << r.IntN(40)
		return cell{n, fmt.Sprintf("cast(%d as bigint)", n)}
	case "double":
		return cell{float64(n) / 8, fmt.Sprintf("cast(%v as double)", float64(n)/8)}
	case "boolean":
		return cell{n > 0, fmt.Sprint(n > 0)}
	case "date":
		s := time.Unix(0, 0).UTC().AddDate(0, 0, n*17).Format(time.DateOnly)
		return cell{s, "date'" + s + "'"}
	case "timestamp":
		at := time.UnixMilli(1_600_000_000_000 + int64(n)*1_234_567_891).UTC()
		return cell{at.Format("2006-01-02T15:04:05.000Z"), "timestamp'" + at.Format("2006-01-02 15:04:05.000") + "'"}
	case "array<string>":
		list, sql := []any{}, []string{}
		for range 1 + r.IntN(3) {
			s := fmt.Sprint("tag ", r.IntN(9))
			list, sql = append(list, s), append(sql, "'"+s+"'")
		}
		return cell{list, "array(" + strings.Join(sql, ",") + ")"}
	}
	var digits, scale int
	fmt.Sscanf(kind, "decimal(%d,%d)", &digits, &scale)
	s := fmt.Sprintf("%d.%0*d", n+1000, scale, r.IntN(100))
	return cell{s, fmt.Sprintf("cast(%s as %s)", s, kind)}
}

// add adds n random rows, and returns their ids.
func (t *table) add(r *rand.Rand, n int) (ids []int) {
	for range n {
		c := row{"id": {t.next, fmt.Sprintf("cast(%d as int)", t.next)}}
		for _, col := range t.columns[1:] {
			c[col.name] = draw(r, col.kind)
		}
		if t.partition != "" {
			s := string(rune('a' + r.IntN(3)))
			c[t.partition] = cell{s, "'" + s + "'"}
		}
		t.rows[t.next] = c
		ids = append(ids, t.next)
		t.next++
	}
	return ids
}

// selects returns a query that yields rows, less some columns.
func (t *table) selects(ids []int, without ...string) string {
	var all []string
	for _, id := range ids {
		var one []string
		for _, c := range t.columns {
			if !slices.Contains(without, c.name) {
				one = append(one, t.rows[id][c.name].sql)
			}
		}
		all = append(all, "select "+strings.Join(one, ", "))
	}
	return strings.Join(all, " union all ")
}

// jsonl returns rows as JSON lines, for stoa to load.
func (t *table) jsonl(ids []int) []byte {
	var b []byte
	for _, id := range ids {
		c := map[string]any{}
		for name, v := range t.rows[id] {
			c[name] = v.value
		}
		line, err := json.Marshal(c)
		if err != nil {
			panic(err)
		}
		b = append(append(b, line...), '\n')
	}
	return b
}

// query returns a query whose result CarbonData can insert into another table of the same columns. Where a task of
// Spark writes several rows with an array of texts into one partition, CarbonData's texts are those of later rows (it
// keeps references into the row, which Spark reuses); so there each member of the union, which is a task or more, has
// one row per partition.
func (t *table) query() string {
	texts := slices.ContainsFunc(t.columns, func(c column) bool { return c.kind == "array<string>" })
	if t.partition == "" || !texts || len(t.rows) == 0 {
		return "select * from " + t.name
	}
	var groups []string // the nth has the nth row of each partition
	seen := map[any]int{}
	for _, id := range slices.Sorted(maps.Keys(t.rows)) {
		n := seen[t.rows[id][t.partition].value]
		seen[t.rows[id][t.partition].value]++
		if n == len(groups) {
			groups = append(groups, fmt.Sprintf("select * from %s where id in (%d", t.name, id))
		} else {
			groups[n] += fmt.Sprint(",", id)
		}
	}
	return strings.Join(groups, ") union all ") + ")"
}

// lines returns the rows as canonical texts, sorted.
func (t *table) lines() (out []string) {
	for _, c := range t.rows {
		values := map[string]any{}
		for name, v := range c {
			values[name] = v.value
		}
		out = append(out, canonical(values))
	}
	slices.Sort(out)
	return out
}

// where returns the ids of the rows for which a predicate is true.
func (t *table) where(pass func(id int, c row) bool) (ids []int) {
	for _, id := range slices.Sorted(maps.Keys(t.rows)) {
		if pass(id, t.rows[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (t *table) remove(ids []int) {
	for _, id := range ids {
		delete(t.rows, id)
	}
}

// free returns the columns that may be changed or dropped.
func (t *table) free() (out []int) {
	for i, c := range t.columns {
		if i > 0 && c.name != t.partition && !slices.Contains(t.sorted, c.name) && c.name != t.bucketed {
			out = append(out, i)
		}
	}
	return out
}
