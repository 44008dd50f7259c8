//go:build interop

package carbonlife

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
	{"stoa rename", nil, func(l *life) error {
		name := l.t.name + "r"
		if err := l.forget(func() error { return l.run("rename", l.path(), l.j.path(name)) }); err != nil {
			return err
		}
		l.t.name = name
		return l.sql("refresh table %s", name)
	}},
}

// several: after one column is gone there are others.
func several(t *table) bool { return len(t.free()) > 1 }

// again has Spark register the table anew: its catalogue keeps the columns that it saw first.
func (l *life) again() error {
	if err := l.forget(func() error { return nil }); err != nil {
		return err
	}
	return l.sql("refresh table %s", l.t.name)
}

// forget has Spark drop the table while its directory is elsewhere, and does something when it is back.
func (l *life) forget(then func() error) error {
	away := filepath.Join(l.j.work, "away")
	if err := os.Rename(l.path(), away); err != nil {
		return err
	}
	err := l.sql("drop table %s", l.t.name)
	return errors.Join(err, os.RemoveAll(l.path()), os.Rename(away, l.path()), then())
}

// overwritten draws a partition, and rows that take the place of those in it.
func (l *life) overwritten() (p string, ids []int) {
	p = string(rune('a' + l.r.IntN(3)))
	l.t.remove(l.t.where(func(_ int, c row) bool { return c[l.t.partition].value == p }))
	ids = l.t.add(l.r, 1+l.r.IntN(4))
	for _, id := range ids {
		l.t.rows[id][l.t.partition] = cell{p, "'" + p + "'"}
	}
	return p, ids
}

// merge has stoa replace some rows and add others.
func (l *life) merge() error {
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
	all := append(ids[:len(ids):len(ids)], fresh[len(ids):]...)
	file, err := l.j.write("rows.jsonl", l.t.jsonl(all))
	if err != nil {
		return err
	}
	l.story = append(l.story, "rows.jsonl:\n"+string(l.t.jsonl(all)))
	return l.run("merge", l.path(), file, "--key", "id")
}

// fresh adds a column to the model, null in all rows. A partition column stays the last one.
func (l *life) fresh() column {
	kinds := []string{"int", "string", "double", "bigint", "decimal(8,3)"}
	c := column{fmt.Sprintf("n%d", l.t.made), kinds[l.r.IntN(len(kinds))]}
	l.t.made++
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

// without takes a column out of the model.
func (l *life) without() string {
	free := l.t.free()
	at := free[l.r.IntN(len(free))]
	name := l.t.columns[at].name
	l.t.columns = append(l.t.columns[:at:at], l.t.columns[at+1:]...)
	for _, r := range l.t.rows {
		delete(r, name)
	}
	return name
}

// renamed gives a column of the model another name.
func (l *life) renamed() (old column, name string) {
	free := l.t.free()
	at := free[l.r.IntN(len(free))]
	old, name = l.t.columns[at], fmt.Sprintf("r%d", l.t.made)
	l.t.made++
	l.t.columns[at].name = name
	for _, r := range l.t.rows {
		r[name] = r[old.name]
		delete(r, old.name)
	}
	return old, name
}

// widened gives a column of the model a wider type; nil: none can have one.
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
		return c
	}
	return nil
}
