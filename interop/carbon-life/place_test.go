//go:build interop

package carbonlife

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// placements are operations on whole segments, on directories outside the table, and with other tables.
var placements = []operation{
	{"stoa delete --segment", nil, func(l *life) error {
		return l.dropSegment(func(s string) error { return l.run("delete", l.path(), "--segment", s) })
	}},
	{"spark delete segment", nil, func(l *life) error {
		return l.dropSegment(func(s string) error {
			return l.sql("delete from table %s where segment.id in (%s)", l.t.name, s)
		})
	}},
	{"stoa add-segment", plain, func(l *life) error {
		return l.moved(func(place string) error { return l.run("add-segment", l.path(), place) })
	}},
	{"spark add segment", unaltered, func(l *life) error {
		return l.moved(func(place string) error {
			return l.sql("alter table %s add segment options('path'='%s', 'format'='carbon')", l.t.name, place)
		})
	}},
	{"spark add segment of Parquet", unaltered, func(l *life) error { return l.parquet(true) }},
	{"stoa add-segment of Parquet", unaltered, func(l *life) error { return l.parquet(false) }},
	{"stoa add-partition", partitioned, func(l *life) error { // without rows
		l.t.made++
		return l.run("add-partition", l.path(), fmt.Sprintf("%s=none%d", l.t.partition, l.t.made))
	}},
	{"spark add partition", partitioned, func(l *life) error {
		l.t.made++
		return l.sql("alter table %s add partition (%s='none%d')", l.t.name, l.t.partition, l.t.made)
	}},
	{"stoa add-partition --location", partitioned, func(l *life) error {
		err := l.placed(func(p, place string) error {
			return l.run("add-partition", l.path(), l.t.partition+"="+p, "--location", place)
		})
		if err != nil {
			return err
		}
		return l.again() // so that Hive has its location
	}},
	{"spark add partition location", movable, func(l *life) error {
		return l.placed(func(p, place string) error {
			return l.sql("alter table %s add partition (%s='%s') location '%s'", l.t.name, l.t.partition, p, place)
		})
	}},
	{"spark runs stoa's DDL", nil, func(l *life) error { return l.ddl() }},
}

func unaltered(t *table) bool { return t.partition == "" && !t.altered }

func movable(t *table) bool { return t.partition != "" && !t.altered }

// known tells Hive's metastore of partitions that stoa may have made: CarbonData asks it for the partitions, reads no
// others, and deletes nothing where one is missing.
func (l *life) known(parts ...string) error {
	for _, p := range parts {
		if l.t.known[p] {
			continue
		}
		err := l.sql("alter table %s add if not exists partition (%s='%s')", l.t.name, l.t.partition, p)
		if err != nil {
			return err
		}
		l.t.known[p] = true
	}
	return nil
}

// knownOf does so for the partitions of rows.
func (l *life) knownOf(ids []int) error {
	if l.t.partition == "" {
		return nil
	}
	for _, id := range ids {
		if err := l.known(l.t.rows[id][l.t.partition].value.(string)); err != nil {
			return err
		}
	}
	return nil
}

// idsOf returns the ids of a segment's rows, as stoa reads them.
func (l *life) idsOf(segment string) (ids []int, err error) {
	out, err := l.j.run(l.t.flags("cat", l.path(), "--segment", segment, "--columns", "id", "-f", "jsonl")...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var x struct{ ID *int }
		if err := d.Decode(&x); err != nil {
			return nil, err
		}
		if x.ID == nil {
			return nil, fmt.Errorf("segment %s: a row without an id", segment)
		}
		ids = append(ids, *x.ID)
	}
	return ids, nil
}

// dropSegment has stoa or CarbonData delete a segment.
func (l *life) dropSegment(do func(segment string) error) error {
	list := l.segments()
	if len(list) == 0 {
		return nil
	}
	s := list[l.r.IntN(len(list))]
	ids, err := l.idsOf(s)
	if err != nil {
		return err
	}
	l.t.remove(ids)
	return do(s)
}

// clear returns a segment in the table's directory without deleted rows; "": there is none. Of a file whose rows are
// all deleted only the update status says so.
func (l *life) clear() string {
	type entry struct {
		LoadName, LoadStatus, UpdateDeltaEndTimestamp, Path, UpdateStatusFileName string
		SegmentName                                                               string // in an update status
	}
	read := func(name string) (list []entry) {
		b, err := os.ReadFile(filepath.Join(l.path(), "Metadata", name))
		if err != nil || json.Unmarshal(b, &list) != nil {
			return nil
		}
		return list
	}
	list := read("tablestatus")
	changed := map[string]bool{}
	if len(list) > 0 && list[0].UpdateStatusFileName != "" {
		for _, u := range read(list[0].UpdateStatusFileName) {
			changed[u.SegmentName] = true
		}
	}
	for _, e := range list {
		if e.LoadStatus == "Success" && e.UpdateDeltaEndTimestamp == "" && !changed[e.LoadName] &&
			(e.Path == "" || e.Path == "NA") {
			return e.LoadName
		}
	}
	return ""
}

// outside returns a new directory outside the table.
func (l *life) outside() string {
	l.t.made++
	return filepath.Join(l.j.work, fmt.Sprintf("%s_place%d", l.t.dir, l.t.made))
}

// moved copies a segment's files to another directory, deletes the segment, and has the files added from there.
func (l *life) moved(add func(place string) error) error {
	s := l.clear()
	if s == "" {
		return nil
	}
	place := l.outside()
	l.t.places = append(l.t.places, place)
	err := os.CopyFS(place, os.DirFS(filepath.Join(l.path(), "Fact", "Part0", "Segment_"+s)))
	if err == nil {
		err = l.run("delete", l.path(), "--segment", s)
	}
	if err != nil {
		return err
	}
	l.t.external = true
	return add(place)
}

// placed loads rows into a partition of their own, moves its files to another directory, and has that added.
func (l *life) placed(add func(p, place string) error) error {
	l.t.made++
	p := fmt.Sprintf("far%d", l.t.made)
	ids := l.t.add(l.r, 1+l.r.IntN(4))
	for _, id := range ids {
		l.t.rows[id][l.t.partition] = cell{p, "'" + p + "'"}
	}
	if err := l.load(ids); err != nil {
		return err
	}
	place := l.outside()
	l.t.places = append(l.t.places, place)
	err := os.CopyFS(place, os.DirFS(filepath.Join(l.path(), l.t.partition+"="+p)))
	if err == nil {
		// Hive must not know its old location
		err = l.sql("alter table %s drop partition (%s='%s')", l.t.name, l.t.partition, p)
		delete(l.t.known, p)
	}
	if err == nil {
		err = l.run("clean", l.path())
	}
	if err != nil {
		return err
	}
	l.t.external = true
	return add(p, place)
}

// staged has Spark make a Parquet table of rows, at a location if one is given.
func (l *life) staged(name string, ids []int, place string) error {
	at := ""
	if place != "" {
		at = " location '" + place + "'"
	}
	var names []string
	for _, c := range l.t.columns {
		names = append(names, c.name)
	}
	return l.sql("create table %s using parquet%s as select * from (%s) as x(%s)", name, at, l.t.selects(ids),
		strings.Join(names, ", "))
}

// parquet adds a segment of Parquet, compares, and deletes it again: CarbonData refuses other changes beside it.
func (l *life) parquet(spark bool) error {
	place := l.outside()
	ids := l.t.add(l.r, 1+l.r.IntN(8))
	stage := fmt.Sprintf("%s_p%d", l.t.name, l.t.made)
	if err := l.staged(stage, ids, place); err != nil {
		return err
	}
	before := l.segments()
	var err error
	if l.t.external = true; spark {
		err = l.sql("alter table %s add segment options('path'='%s', 'format'='parquet')", l.t.name, place)
	} else {
		err = l.run("add-segment", l.path(), place, "--form", "parquet")
	}
	if err == nil {
		err = l.j.same(l.t)
	}
	if err != nil {
		return err
	}
	for _, s := range l.segments() {
		if !slices.Contains(before, s) {
			l.t.remove(ids)
			err = errors.Join(err, l.run("delete", l.path(), "--segment", s))
		}
	}
	return errors.Join(err, l.run("clean", l.path()), l.sql("drop table %s", stage))
}

// createdName matches the name in CREATE TABLE.
var createdName = regexp.MustCompile("(?i)^create table (`[^`]*`|\\S+)")

// ddl has Spark make a table from the statement that stoa prints, and copy the rows; stoa reads it.
func (l *life) ddl() error {
	if l.t.external {
		return nil
	}
	out, err := l.j.run("schema", l.path(), "-f", "ddl", "--dialect", "carbon")
	if err != nil {
		return err
	}
	name := l.t.name + "_copy"
	out = strings.TrimSuffix(strings.Join(strings.Fields(out), " "), ";")
	if !createdName.MatchString(out) {
		return fmt.Errorf("no CREATE TABLE: %s", out)
	}
	if err := l.sql("%s", createdName.ReplaceAllString(out, "CREATE TABLE "+name)); err != nil {
		return err
	}
	if err := l.sql("insert into %s %s", name, l.t.query()); err != nil {
		return err
	}
	c := *l.t
	c.name, c.dir = name, name
	return errors.Join(l.j.same(&c), l.sql("drop table %s", name))
}
