package attack

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// stats reads every page. So if it exits with 0, its numbers must be those of the original rows, and the stored bytes
// of its columns must not exceed the size of the files.
func (c *trial) stats() {
	got := c.verb("stats", "stats", "-f", "json")
	var cols []struct {
		Column, Type string
		Rows, Nulls  int64
		Stored       int64 `json:"stored_bytes"`
		Min, Max     *string
	}
	if got.Status != fine || json.Unmarshal(got.Stdout, &cols) != nil || c.f.text || c.f.changed || c.loose() {
		return
	}
	size, stored := int64(0), int64(0)
	for _, name := range c.f.files {
		if info, err := os.Stat(filepath.Join(c.dir, name)); err == nil {
			size += info.Size()
		}
	}
	for _, x := range cols {
		stored += x.Stored
		values, ok := c.f.scalars(x.Column)
		if !ok || c.allowed() > 0 {
			continue
		}
		nulls := int64(len(c.f.ref) - len(values))
		if x.Rows != int64(len(c.f.ref)) || x.Nulls != nulls {
			c.find("silent", "stats ended with 0, and column %s has %d rows and %d nulls, expected %d and %d", x.Column,
				x.Rows, x.Nulls, len(c.f.ref), nulls)
		}
		if !strings.HasPrefix(x.Type, "int") || x.Min == nil || x.Max == nil || len(values) == 0 {
			continue
		}
		low, high := extremes(values)
		if *x.Min != low || *x.Max != high {
			c.find("silent", "stats ended with 0, and column %s is from %s to %s, expected %s to %s", x.Column,
				*x.Min, *x.Max, low, high)
		}
	}
	if stored > size {
		c.find("silent", "stats ended with 0, and the columns take %d bytes, the files have %d", stored, size)
	}
}

// scalars returns the values of a column that are not null. ok reports whether the column exists and has no lists or
// structs.
func (f *fixture) scalars(column string) (out []string, ok bool) {
	for _, l := range f.ref {
		for _, x := range cellsOf(l) {
			if x.name != column {
				continue
			}
			if ok = x.value[0] != '[' && x.value[0] != '{'; !ok {
				return nil, false
			}
			if x.value != "null" {
				out = append(out, x.value)
			}
		}
	}
	return out, ok
}

// extremes returns the minimum and the maximum of integers.
func extremes(values []string) (low, high string) {
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	by := func(a, b string) int {
		switch x, y := number(a), number(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	return slices.MinFunc(values, by), slices.MaxFunc(values, by)
}

// advise rewrites all rows in memory, since there are so few. If cat fails, advise must fail, too.
func (c *trial) advise() {
	if got := c.verb("advise", "advise"); got.Status == fine && c.says("cat") == damage && !c.altered["cat"] {
		c.find("verdict", "cat ended with 3, advise with 0")
	}
}

// copies converts some columns to another file of the format, which copies their pages without decoding them: cat of
// the copy must be cat of those columns.
func (c *trial) copies(r *rand.Rand) {
	var names, all []string
	for _, x := range cellsOf(c.f.ref[0]) {
		all = append(all, x.name)
		if r.IntN(2) == 0 {
			names = append(names, x.name)
		}
	}
	if len(names) == 0 {
		names = all
	}
	if len(names) == 0 {
		return
	}
	out := filepath.Join(c.dir, "..", "copy.parquet")
	os.Remove(out)
	defer os.Remove(out)
	got := c.a.verb(c.f, c.dir, "convert", "-o", out, "-c", strings.Join(names, ","))
	c.a.seen["convert copy "+strconv.Itoa(got.Status)]++
	switch _, err := os.Stat(out); {
	case got.Status == died:
		c.find("alive", "convert -c %s", got.died)
	case got.Status == fine && err != nil:
		c.find("output", "convert -c ended with 0 and wrote nothing")
	case got.Status == cannot && err == nil || got.Status == use && err == nil:
		c.find("output", "convert -c ended with %d and left an output", got.Status)
	case got.Status == fine:
		c.project(names, func(d *trial) { d.readBack("convert -c", out) })
	}
}

// project calls do with a trial of only some columns.
func (c *trial) project(names []string, do func(d *trial)) {
	f, d := *c.f, *c
	f.ref = nil
	for _, l := range c.f.ref {
		var b strings.Builder
		for _, x := range cellsOf(l) {
			if !slices.Contains(names, x.name) {
				continue
			}
			name, _ := json.Marshal(x.name)
			b.WriteString("," + string(name) + ":" + x.value)
		}
		f.ref = append(f.ref, "{"+strings.TrimPrefix(b.String(), ",")+"}")
	}
	d.f, d.finds = &f, nil
	do(&d)
	c.finds, c.excused = append(c.finds, d.finds...), c.excused || d.excused
}
