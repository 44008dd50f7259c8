//go:build interop

package carbonlife

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func plain(t *table) bool { return t.partition == "" }

// alterations are operations on columns, partitions and whole tables.
var alterations = []operation{
	{"stoa truncate", nil, func(l *life) error {
		l.t.rows = map[int]row{}
		return l.run("truncate", l.path(), "--yes")
	}},
	{"stoa load --overwrite", plain, func(l *life) error {
		l.t.rows = map[int]row{}
		return l.load(l.t.add(l.r, l.r.IntN(6)), "--overwrite")
	}},
	{"stoa load --overwrite --partition", partitioned, func(l *life) error {
		p, ids := l.overwritten()
		return l.load(ids, "--overwrite", "--partition", l.t.partition+"="+p)
	}},
	{"stoa drop-partition", partitioned, func(l *life) error {
		p := l.parts()
		if p == "" {
			return nil
		}
		l.t.remove(l.t.where(func(_ int, c row) bool { return c[l.t.partition].value == p }))
		return l.run("drop-partition", l.path(), l.t.partition+"="+p)
	}},
	{"stoa merge", nil, func(l *life) error { return l.merge() }},
	{"stoa set-property", nil, func(l *life) error {
		return l.run("set-property", l.path(), "table_blocksize="+strconv.Itoa(1+l.r.IntN(9)), "comment=life")
	}},
	{"spark set tblproperties", nil, func(l *life) error {
		err := l.sql("alter table %s set tblproperties('local_dictionary_threshold'='%d', 'comment'='spark')", l.t.name,
			1000+l.r.IntN(9000))
		if err != nil && l.t.altered && strings.Contains(err.Error(), "duplicate column(s): is present in LOCAL_DICT") {
			l.steps["spark set tblproperties, refused for a column without a name"]++
			return nil
		}
		return err
	}},
	{"stoa add-column", nil, func(l *life) error {
		c := l.fresh()
		if err := l.run("add-column", l.path(), c.name, c.kind); err != nil {
			return err
		}
		return l.again()
	}},
	{"spark add columns", nil, func(l *life) error {
		c := l.fresh()
		return l.sql("alter table %s add columns (%s %s)", l.t.name, c.name, c.kind)
	}},
	{"stoa drop-column", several, func(l *life) error {
		if err := l.run("drop-column", l.path(), l.without()); err != nil {
			return err
		}
		return l.again()
	}},
	{"spark drop columns", several, func(l *life) error {
		return l.sql("alter table %s drop columns (%s)", l.t.name, l.without())
	}},
	{"stoa rename --column", several, func(l *life) error {
		c, name := l.renamed()
		if err := l.run("rename", l.path(), name, "--column", c.name); err != nil {
			return err
		}
		return l.again()
	}},
	{"spark rename column", several, func(l *life) error {
		c, name := l.renamed()
		return l.sql("alter table %s change %s %s %s", l.t.name, c.name, name, c.kind)
	}},
	{"stoa set-type", nil, func(l *life) error {
		c := l.widened()
		if c == nil {
			return nil
		}
		if err := l.run("set-type", l.path(), c.name, c.kind); err != nil {
			return err
		}
		return l.again()
	}},
	{"spark change type", nil, func(l *life) error {
		c := l.widened()
		if c == nil {
			return nil
		}
		return l.sql("alter table %[1]s change %[2]s %[2]s %[3]s", l.t.name, c.name, c.kind)
	}},
	{"stoa rename", inside, func(l *life) error {
		from, name := l.path(), fmt.Sprintf("%sr%d", l.t.name, l.t.made)
		l.t.made++
		err := l.forget(func() error {
			l.t.name, l.t.dir = name, name
			return l.run("rename", from, l.path())
		})
		if err != nil {
			return err
		}
		return l.relocated()
	}},
	{"spark rename", nil, func(l *life) error { // the directory keeps its name
		old := l.t.name
		l.t.name = fmt.Sprintf("%sx%d", old, l.t.made)
		l.t.made++
		return l.sql("alter table %s rename to %s", old, l.t.name)
	}},
}

// several reports whether columns remain after one is dropped.
func several(t *table) bool { return len(t.free()) > 1 }

// inside reports whether all files of the table lie in its directory, and no file names it by its full path.
func inside(t *table) bool { return !t.external }

// again has Spark register the table anew, as its catalogue keeps the columns from the first time. CarbonData finds a
// renamed table only in a directory of its new name, so the table moves there.
func (l *life) again() error {
	err := l.forget(func() error {
		from := l.path()
		if l.t.dir == l.t.name {
			return nil
		}
		l.t.dir = l.t.name
		return l.run("rename", from, l.path())
	})
	if err != nil {
		return err
	}
	return l.relocated()
}

// relocated has Spark register the table whose directory may have moved. CarbonData's cache is by the table's id and
// keeps the old directory: it would read no rows of partitions, or no file.
func (l *life) relocated() error {
	if err := l.register(); err != nil {
		return err
	}
	return l.sql("drop metacache on table %s", l.t.name)
}

// register has Spark register the table, with the partitions that have rows.
func (l *life) register() error {
	l.t.known = map[string]bool{}
	return l.sql("refresh table %s", l.t.name)
}

// forget moves the table's directory away, and places outside of it, which Hive removes with their partitions, has
// Spark drop the table, moves them back, and calls then.
func (l *life) forget(then func() error) error {
	var back []func() error
	for i, place := range append([]string{l.path()}, l.t.places...) {
		away := filepath.Join(l.j.work, fmt.Sprint("away", i))
		err := os.Rename(place, away)
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			continue // CarbonData has cleaned the segment that was there
		}
		if err != nil {
			return err
		}
		back = append(back, func() error { return errors.Join(os.RemoveAll(place), os.Rename(away, place)) })
	}
	err := l.sql("drop table %s", l.t.name)
	for _, f := range back {
		err = errors.Join(err, f())
	}
	return errors.Join(err, then())
}

// overwritten draws a partition, and rows that replace the rows in it.
func (l *life) overwritten() (p string, ids []int) {
	p = string(rune('a' + l.r.IntN(3)))
	l.t.remove(l.t.where(func(_ int, c row) bool { return c[l.t.partition].value == p }))
	ids = l.t.add(l.r, 1+l.r.IntN(4))
	for _, id := range ids {
		l.t.rows[id][l.t.partition] = cell{p, "'" + p + "'"}
	}
	return p, ids
}

// replaced changes some rows of the model, adds others, and returns the ids of both.
func (l *life) replaced() []int {
	ids, _ := l.some()
	if len(ids) > 5 {
		ids = ids[:5]
	}
	fresh := l.t.add(l.r, len(ids)+1+l.r.IntN(3))
	for i, id := range ids { // new values, the old id
		c := l.t.rows[fresh[i]]
		c["id"] = l.t.rows[id]["id"]
		l.t.rows[id] = c
		delete(l.t.rows, fresh[i])
	}
	return append(ids[:len(ids):len(ids)], fresh[len(ids):]...)
}

// merge has stoa replace some rows and add others.
func (l *life) merge() error {
	all := l.replaced()
	file, err := l.j.write("rows.jsonl", l.t.jsonl(all))
	if err != nil {
		return err
	}
	l.story = append(l.story, "rows.jsonl:\n"+string(l.t.jsonl(all)))
	if err := l.run("merge", l.path(), file, "--key", "id"); err != nil {
		return err
	}
	return l.knownOf(all)
}

// fresh adds a column to the model, null in all rows. A partition column stays the last one.
func (l *life) fresh() column {
	kinds := []string{"int", "double", "bigint", "decimal(8,3)", "string"}
	if l.t.partition != "" && len(l.t.sorted) > 0 { // INSERT would exchange its texts with the partition's
		kinds = kinds[:4]
	}
	c := column{fmt.Sprintf("n%d", l.t.made), kinds[l.r.IntN(len(kinds))]}
	l.t.made++
	l.t.altered = true
	at := len(l.t.columns)
	if l.t.partition != "" {
		at--
	}
	l.t.columns = append(l.t.columns[:at:at], append([]column{c}, l.t.columns[at:]...)...)
	for _, r := range l.t.rows {
		r[c.name] = null(c.kind)
	}
	return c
}

// dimension reports whether CarbonData stores values of a type as a dimension in a column that is no sort column.
func dimension(kind string) bool {
	return kind == "string" || kind == "date" || kind == "array<string>"
}

// without removes a column from the model.
func (l *life) without() string {
	free := l.t.free()
	at := free[l.r.IntN(len(free))]
	name := l.t.columns[at].name
	l.t.altered, l.t.measures = true, l.t.measures || !dimension(l.t.columns[at].kind)
	l.t.columns = append(l.t.columns[:at:at], l.t.columns[at+1:]...)
	for _, r := range l.t.rows {
		delete(r, name)
	}
	return name
}

// renamed renames a column of the model.
func (l *life) renamed() (old column, name string) {
	free := l.t.free()
	at := free[l.r.IntN(len(free))]
	old, name = l.t.columns[at], fmt.Sprintf("r%d", l.t.made)
	l.t.made++
	l.t.altered = true
	l.t.columns[at].name = name
	for _, r := range l.t.rows {
		r[name] = r[old.name]
		delete(r, old.name)
	}
	return old, name
}

// widened gives a column of the model a wider type; nil: no column can have one.
func (l *life) widened() *column {
	for _, at := range l.t.free() {
		c := &l.t.columns[at]
		var digits, scale int
		switch n, _ := fmt.Sscanf(c.kind, "decimal(%d,%d)", &digits, &scale); {
		case c.kind == "int":
			c.kind = "bigint"
		case n == 2 && digits < 30:
			c.kind = fmt.Sprintf("decimal(%d,%d)", digits+1+l.r.IntN(8), scale)
		default:
			continue
		}
		l.t.altered = true
		return c
	}
	return nil
}
