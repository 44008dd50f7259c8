//go:build interop

package carbonlife

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stoa/interop/fuzz"
)

// TestDependents: tables with a secondary index table, and tables with a spatial index, which both change in turn, by
// seed. After each step Spark finds rows by the index. STOA_LIVES is the number of tables of each kind (2).
func TestDependents(t *testing.T) {
	seed := fuzz.Seed(t)
	j := newJudge(t)
	steps, count := map[string]int{}, 0
	for i := range uint64(each()) {
		for kind, live := range []func(l *life, name string) error{(*life).indexed, (*life).spatial} {
			l := &life{j: j, r: rand.New(rand.NewPCG(seed+i, uint64(30+kind))), steps: steps}
			count++
			if err := live(l, fmt.Sprintf("dep%d_%d", seed+i, kind)); err != nil {
				l.failed(t, fmt.Sprintf("STOA_SEED=%d, kind %d", seed+i, kind), err)
			}
		}
	}
	judged(t, j, count, steps)
}

// lives runs n operations, and check after each.
func (l *life) lives(n int, of []operation, check func() error) error {
	for range n {
		o := of[l.r.IntN(len(of))]
		if err := l.step(o); err != nil {
			return err
		}
		if err := check(); err != nil {
			return fmt.Errorf("after %s: %v", o.name, err)
		}
	}
	return nil
}

// those returns the named operations.
func those(names ...string) (out []operation) {
	for _, n := range names {
		o, ok := named(n)
		if !ok {
			panic(n)
		}
		out = append(out, o)
	}
	return out
}

// indexed is the life of a table with an index table. CarbonData refuses to update rows of such a table, and stoa's
// changes need --disable-dependents.
func (l *life) indexed(name string) error {
	t := &table{name: name, dir: name, rows: map[int]row{}, columns: []column{{"id", "int"}, {"name", "string"},
		{"size", "smallint"}, {"price", "decimal(10,2)"}, {"open", "boolean"}}, dependents: true}
	if err := l.create(t, true); err != nil {
		return err
	}
	if err := l.all("spark insert", "spark insert"); err != nil {
		return err
	}
	index := name + "_i"
	if err := l.sql("create index %s on table %s (name) as 'carbondata'", index, name); err != nil {
		return err
	}
	check := func() error { return l.found(index) }
	err := l.lives(14, append(those("spark insert", "spark delete", "spark compact minor", "spark compact major",
		"spark clean", "stoa load", "stoa load", "stoa delete", "stoa update", "stoa compact --minor",
		"stoa compact --major", "stoa clean", "stoa merge", "stoa truncate", "stoa load --overwrite",
		"stoa merge-index"), those("stoa load", "spark insert")...), check)
	if err != nil {
		return err
	}
	if err := l.lives(2, those("spark insert"), check); err != nil { // which adds to the index what it lacks
		return err
	}
	return l.end()
}

// found has Spark find the rows with each name by the index table, and stoa verify that.
func (l *life) found(index string) error {
	names := map[string]string{}
	for _, r := range l.t.rows {
		if s, ok := r["name"].value.(string); ok {
			names[s] = r["name"].sql
		}
	}
	for _, s := range slices.Sorted(maps.Keys(names)) {
		query := fmt.Sprintf("select * from %s where name = %s", l.t.name, names[s])
		plan, err := l.j.sql("explain " + query)
		if err != nil || !strings.Contains(fmt.Sprint(plan), "SIFilterPushJoin") {
			return fmt.Errorf("%s does not use the index: %v, %v", query, plan, err)
		}
		rows, err := l.j.sql(query)
		if err != nil {
			return err
		}
		got, err := parse(rows)
		if err != nil {
			return err
		}
		same := *l.t
		same.rows = maps.Clone(l.t.rows)
		maps.DeleteFunc(same.rows, func(_ int, r row) bool { return r["name"].value != s })
		if d := differ(got, same.lines()); d != "" {
			return fmt.Errorf("by the index, %s: %s", query, d)
		}
	}
	_, err := l.j.run("verify", l.j.path(index))
	return err
}

// spatial is the life of a table with a spatial index, which both compute.
func (l *life) spatial(name string) error {
	t := &table{name: name, dir: name, rows: map[int]row{}, columns: []column{{"id", "int"}, {"longitude", "bigint"},
		{"latitude", "bigint"}, {"name", "string"}, {"cell", "bigint"}}}
	l.t, t.known = t, map[string]bool{}
	err := l.sql("create table %s (id int, longitude bigint, latitude bigint, name string) stored as carbondata "+
		"tblproperties('SPATIAL_INDEX'='cell', 'SPATIAL_INDEX.cell.type'='geohash', "+
		"'SPATIAL_INDEX.cell.sourcecolumns'='longitude, latitude', 'SPATIAL_INDEX.cell.originLatitude'='39.832277', "+
		"'SPATIAL_INDEX.cell.gridSize'='50', 'SPATIAL_INDEX.cell.conversionRatio'='1000000')", name)
	if err != nil {
		return err
	}
	t.sorted = []string{"longitude", "latitude", "cell"} // they are not changed
	of := append(those("spark delete", "stoa delete", "spark update", "stoa update", "spark compact major",
		"stoa compact --major", "stoa compact --minor", "stoa clean", "spark clean", "stoa truncate"),
		operation{"stoa load, computes", nil, func(l *life) error { return l.loadPoints(false, "load") }},
		operation{"stoa load, keeps", nil, func(l *life) error { return l.loadPoints(true, "load") }},
		operation{"stoa merge, computes", nil, func(l *life) error { return l.loadPoints(false, "merge") }},
		operation{"spark insert, computes", nil, func(l *life) error { return l.insertPoints(false) }},
		operation{"spark insert, keeps", nil, func(l *life) error { return l.insertPoints(true) }})
	of = append(of, of[len(of)-5:]...)
	if err := l.lives(16, of, func() error { return nil }); err != nil {
		return err
	}
	if err := l.lives(2, of[len(of)-5:], func() error { return nil }); err != nil {
		return err
	}
	return l.polygons()
}

// points adds rows near 116, 40; the cells of some are their own.
func (l *life) points(own bool) (ids []int) {
	ids = l.t.add(l.r, 1+l.r.IntN(12))
	number := func(n int64) cell { return cell{n, fmt.Sprintf("cast(%d as bigint)", n)} }
	for _, id := range ids {
		r := l.t.rows[id]
		lon, lat := int64(116_000_000+l.r.IntN(500_000)), int64(39_800_000+l.r.IntN(500_000))
		r["longitude"], r["latitude"], r["cell"] = number(lon), number(lat), number(cellOf(lon, lat))
		if own && l.r.IntN(2) == 0 {
			r["cell"] = number(int64(l.r.IntN(1 << 30)))
		}
	}
	return ids
}

// cellOf computes the cell of a point as the documentation of CarbonData describes it: the bits of row and column in
// turn, in a grid of 50 metres.
func cellOf(lon, lat int64) (id int64) {
	degree := math.Pi * 6371004 / 180 // metres
	half := int64(1) << 19
	for half < int64(180*degree*math.Cos(39.832277*math.Pi/180)/50) {
		half <<= 1
	}
	col := int64(math.Floor(float64(lon)/1e6*degree*math.Cos(39.832277*math.Pi/180)/50)) + half
	row := int64(math.Floor(float64(lat)/1e6*degree/50)) + half
	for bit := range 31 {
		id |= row>>bit&1<<(2*bit+1) | col>>bit&1<<(2*bit)
	}
	return id
}

// loadPoints has stoa add points by a verb. Without own cells the rows do not have the column.
func (l *life) loadPoints(own bool, verb string) error {
	ids := l.points(own)
	rows := *l.t
	rows.rows = map[int]row{}
	for _, id := range ids {
		rows.rows[id] = maps.Clone(l.t.rows[id])
		if !own {
			delete(rows.rows[id], "cell")
		}
	}
	lines := rows.jsonl(ids)
	file, err := l.j.write("points.jsonl", lines)
	if err != nil {
		return err
	}
	l.story = append(l.story, "points.jsonl:\n"+string(lines))
	args := []string{verb, l.path(), file}
	if verb == "merge" {
		args = append(args, "--key", "id")
	}
	return l.run(args...)
}

// insertPoints has Spark add points. Without own cells they are null, and CarbonData computes them.
func (l *life) insertPoints(own bool) error {
	var all []string
	for _, id := range l.points(own) {
		r := l.t.rows[id]
		cells := "cast(null as bigint)"
		if own {
			cells = r["cell"].sql
		}
		all = append(all, fmt.Sprintf("select %s, %s, %s, %s, %s", cells, r["id"].sql, r["longitude"].sql,
			r["latitude"].sql, r["name"].sql))
	}
	return l.sql("insert into %s %s", l.t.name, strings.Join(all, " union all "))
}

// polygons has Spark find the points in a polygon, which must be those that it finds in a copy that it wrote itself.
func (l *life) polygons() error {
	out, err := l.j.run("schema", l.path(), "-f", "ddl", "--dialect", "carbon")
	if err != nil {
		return err
	}
	twin := l.t.name + "_copy"
	out = strings.TrimSuffix(strings.Join(strings.Fields(out), " "), ";")
	if err := l.sql("%s", createdName.ReplaceAllString(out, "CREATE TABLE "+twin)); err != nil {
		return err
	}
	if err := l.sql("insert into %s select * from %s", twin, l.t.name); err != nil {
		return err
	}
	some := 0
	for _, p := range []string{"115.9 39.7, 116.6 39.7, 116.6 40.4, 115.9 40.4, 115.9 39.7",
		"116.1 39.9, 116.3 39.9, 116.2 40.2, 116.1 39.9"} {
		var got [2][]string
		for i, name := range []string{l.t.name, twin} {
			query := fmt.Sprintf("select id from %s where in_polygon('%s') order by id", name, p)
			if got[i], err = l.j.sql(query); err != nil {
				return err
			}
		}
		if !slices.Equal(got[0], got[1]) {
			return fmt.Errorf("in %s: %v, in the copy %v", p, got[0], got[1])
		}
		some += len(got[0])
	}
	if some == 0 && len(l.t.rows) > 20 {
		return fmt.Errorf("no point of %d was found", len(l.t.rows))
	}
	_, err = l.j.sql("drop table " + twin)
	return err
}
