//go:build interop

package carbonlife

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// operation is something that stoa or CarbonData does to a table.
type operation struct {
	name string
	fits func(t *table) bool // nil: every table
	do   func(l *life) error
}

func partitioned(t *table) bool { return t.partition != "" }

// operations is all operations; those listed twice are drawn twice as often.
var operations = slices.Concat(rowOperations, rowOperations[:4], alterations, placements)

// rowOperations are operations on rows and segments.
var rowOperations = []operation{
	{"stoa load", nil, func(l *life) error {
		return l.load(l.t.add(l.r, 1+l.r.IntN(20)), l.loading()...)
	}},
	{"spark insert", nil, func(l *life) error { return l.insert(l.t.add(l.r, 1+l.r.IntN(8))) }},
	{"stoa delete", nil, func(l *life) error {
		ids, where := l.some()
		l.t.remove(ids)
		return l.run("delete", l.path(), "--where", where)
	}},
	{"spark delete", nil, func(l *life) error {
		ids, where := l.some()
		if l.far(ids) {
			return nil
		}
		l.t.remove(ids)
		return l.sql("delete from %s where %s", l.t.name, where)
	}},
	{"stoa load of nothing", nil, func(l *life) error { return l.load(nil) }},
	{"spark insert of nothing", nil, func(l *life) error {
		return l.sql("insert into %[1]s select * from %[1]s where id < 0", l.t.name)
	}},
	{"stoa update", nil, func(l *life) error { return l.update(true) }},
	{"spark update", nil, func(l *life) error { return l.update(false) }},
	{"stoa compact --minor", nil, func(l *life) error { return l.run("compact", l.path(), "--minor") }},
	{"stoa compact --major", nil, func(l *life) error { return l.run("compact", l.path(), "--major") }},
	{"stoa compact --segments", nil, func(l *life) error {
		if ids := l.segments(); len(ids) > 1 {
			return l.run("compact", l.path(), "--segments", strings.Join(ids[:2], ","))
		}
		return nil
	}},
	{"spark compact minor", nil, func(l *life) error { return l.compact("minor", "") }},
	{"spark compact major", nil, func(l *life) error { return l.compact("major", "") }},
	{"spark compact custom", nil, func(l *life) error {
		if ids := l.segments(); len(ids) > 1 {
			return l.compact("custom", " where segment.id in ("+strings.Join(ids[:2], ",")+")")
		}
		return nil
	}},
	{"stoa clean", nil, func(l *life) error { return l.run("clean", l.path()) }},
	{"spark clean", nil, func(l *life) error {
		return l.sql("clean files for table %s options('force'='true')", l.t.name)
	}},
	{"stoa merge-index", nil, func(l *life) error { return l.run("merge-index", l.path()) }},
	{"spark drop partition", partitioned, func(l *life) error {
		p := l.parts()
		if p == "" {
			return nil
		}
		if err := l.known(p); err != nil {
			return err
		}
		delete(l.t.known, p)
		l.t.remove(l.t.where(func(_ int, c row) bool { return c[l.t.partition].value == p }))
		return l.sql("alter table %s drop partition (%s='%s')", l.t.name, l.t.partition, p)
	}},
	{"spark overwrite partition", partitioned, func(l *life) error {
		if l.withoutFile() {
			l.steps["spark overwrite partition, not drawn beside a load without a segment file"]++
			return nil
		}
		p, ids := l.overwritten()
		if err := l.known(p); err != nil {
			return err
		}
		return l.sql("insert overwrite table %s partition(%s='%s') %s", l.t.name, l.t.partition, p,
			l.t.selects(ids, l.t.partition))
	}},
	{"spark overwrite table", plain, func(l *life) error {
		l.t.rows = map[int]row{}
		return l.sql("insert overwrite table %s %s", l.t.name, l.t.selects(l.t.add(l.r, 1+l.r.IntN(8))))
	}},
	{"spark truncate", nil, func(l *life) error {
		l.t.rows = map[int]row{}
		return l.sql("truncate table %s", l.t.name)
	}},
}

// withoutFile reports whether an entry of tablestatus has no segment file, beside which CarbonData overwrites no
// partition: that of a load without rows, and one of which CarbonData's own clean has removed it.
func (l *life) withoutFile() bool {
	b, err := os.ReadFile(filepath.Join(l.path(), "Metadata", "tablestatus"))
	var list []struct{ SegmentFile string }
	if err != nil || json.Unmarshal(b, &list) != nil {
		return false
	}
	for _, e := range list {
		_, err := os.Stat(filepath.Join(l.path(), "Metadata", "segments", e.SegmentFile))
		if e.SegmentFile == "" || err != nil {
			return true
		}
	}
	return false
}

// compact has Spark compact. CarbonData fails if the segments have no row of one of the buckets, and changes nothing.
// In a major compaction these are all segments, so there must be a bucket without rows: Spark counts them.
func (l *life) compact(kind, which string) error {
	err := l.sql("alter table %s compact '%s'%s", l.t.name, kind, which)
	if err == nil || l.t.bucketed == "" ||
		!strings.Contains(err.Error(), "RowResultMergerProcessor.initRecordHolderHeap") {
		return err
	}
	if kind == "major" {
		rows, counted := l.j.sql(fmt.Sprintf("select count(distinct pmod(hash(%s), %d)) n from %s", l.t.bucketed,
			buckets, l.t.name))
		if counted != nil || fmt.Sprint(rows) == fmt.Sprintf(`[{"n":%d}]`, buckets) {
			return fmt.Errorf("no bucket is empty, %v, %v: %v", rows, counted, err)
		}
	}
	l.steps["spark compact, refused for an empty bucket"]++
	return nil
}

// load has stoa load rows.
func (l *life) load(ids []int, flags ...string) error {
	file, err := l.j.write("rows.jsonl", l.t.jsonl(ids))
	if err != nil {
		return err
	}
	l.story = append(l.story, "rows.jsonl:\n"+string(l.t.jsonl(ids)))
	if err := l.run(append([]string{"load", l.path(), file}, flags...)...); err != nil {
		return err
	}
	return l.knownOf(ids)
}

// loading draws options of a load.
func (l *life) loading() (flags []string) {
	for _, f := range [][]string{{"--parallel", "3"}, {"--opt", "compression=zstd"}, {"--opt", "compression=gzip"},
		{"--opt", "local-dictionary=false"}} {
		if l.r.IntN(6) == 0 {
			flags = append(flags, f...)
		}
	}
	if slices.Contains(flags, "compression=zstd") && slices.Contains(flags, "compression=gzip") {
		return nil
	}
	return flags
}

// insert has Spark add rows.
func (l *life) insert(ids []int) error {
	if l.t.partition != "" {
		for _, id := range ids {
			l.t.known[l.t.rows[id][l.t.partition].value.(string)] = true
		}
	}
	return l.sql("insert into %s %s", l.t.name, l.t.selects(ids))
}

// some draws some rows, and a predicate that selects them.
func (l *life) some() (ids []int, where string) {
	switch l.r.IntN(6) {
	case 0:
		return l.t.where(func(int, row) bool { return true }), "id >= 0"
	case 1:
		n := l.r.IntN(l.t.next + 1)
		return l.t.where(func(id int, _ row) bool { return id == n }), fmt.Sprintf("id = %d", n)
	case 2:
		for _, c := range l.t.columns {
			if c.kind == "string" {
				s := draw(l.r, "string")
				if s.value == nil {
					return l.t.where(func(_ int, r row) bool { return r[c.name].value == nil }), c.name + " is null"
				}
				return l.t.where(func(_ int, r row) bool { return r[c.name].value == s.value }), c.name + " = " + s.sql
			}
		}
	}
	from := l.r.IntN(l.t.next + 1)
	to := from + l.r.IntN(12)
	return l.t.where(func(id int, _ row) bool { return id >= from && id <= to }),
		fmt.Sprintf("id >= %d and id <= %d", from, to)
}

// far reports whether some rows are in a partition with a place of its own, and counts that. CarbonData does not delete
// rows there.
func (l *life) far(ids []int) bool {
	for _, id := range ids {
		if p, ok := l.t.rows[id][l.t.partition].value.(string); ok && strings.HasPrefix(p, "far") {
			l.steps["spark delete or update, not drawn for rows of a partition with a location"]++
			return true
		}
	}
	return false
}

// update changes a column of some rows.
func (l *life) update(ours bool) error {
	free := l.t.free()
	times := slices.ContainsFunc(l.t.columns, func(c column) bool { return c.kind == "timestamp" })
	for range 20 {
		if len(free) == 0 || !ours && times { // CarbonData loses milliseconds
			return nil
		}
		c := l.t.columns[free[l.r.IntN(len(free))]]
		if c.kind == "array<string>" {
			continue
		}
		ids, where := l.some()
		if !ours && l.far(ids) {
			return nil
		}
		v := draw(l.r, c.kind)
		for _, id := range ids {
			l.t.rows[id][c.name] = v
		}
		if !ours {
			return l.sql("update %s set (%s) = (%s) where %s", l.t.name, c.name, v.sql, where)
		}
		text := "null"
		if s, ok := v.value.(string); ok && c.kind == "string" {
			text = "'" + s + "'"
		} else if v.value != nil {
			text = fmt.Sprint(v.value)
		}
		return l.run("update", l.path(), "--set", c.name+"="+text, "--where", where)
	}
	return nil
}

// parts returns the value of a partition of the table; "" if it has none.
func (l *life) parts() string {
	for _, id := range l.t.where(func(int, row) bool { return true }) {
		return l.t.rows[id][l.t.partition].value.(string)
	}
	return ""
}

// segments returns the valid segments.
func (l *life) segments() (ids []string) {
	b, err := os.ReadFile(filepath.Join(l.path(), "Metadata", "tablestatus"))
	var list []struct{ LoadName, LoadStatus string }
	if err != nil || json.Unmarshal(b, &list) != nil {
		return nil
	}
	for _, e := range list {
		if e.LoadStatus == "Success" {
			ids = append(ids, e.LoadName)
		}
	}
	return ids
}
