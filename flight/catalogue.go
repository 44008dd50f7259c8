package main

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
)

// catalogueName is the only catalogue.
const catalogueName = "stoa"

// table is a table of a place, by the names that clients know it by.
type table struct {
	schema, name string
	uri          string
	options      stoa.OpenOptions
}

// catalogue lists the tables of the places.
type catalogue struct {
	places  []string
	options stoa.OpenOptions

	mu     sync.Mutex
	tables []table
	listed time.Time
}

// The catalogue is listed again after this time, and has at most so many tables.
const (
	keepTables = 10 * time.Second
	maxTables  = 100_000
)

// all returns the tables, in the order of schema and name.
func (c *catalogue) all(ctx context.Context) ([]table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables != nil && time.Since(c.listed) < keepTables {
		return c.tables, nil
	}
	out := []table{}
	taken := map[[2]string]bool{}
	schemas := map[string]bool{}
	for _, place := range c.places {
		schema := schemaName(place)
		for schemas[schema] {
			schema += "_"
		}
		schemas[schema] = true
		for e, err := range stoa.List(ctx, place, c.options) {
			switch {
			case err != nil && e.Place == "":
				return nil, err
			case err != nil: // of one file: what it is is not known
				continue
			case len(out) == maxTables:
				return nil, fault.New(fault.Limit, fault.Span{}, "", "there are more than %d tables", maxTables)
			}
			uri, o := stoa.Named(e, c.options)
			name := cmp.Or(e.Table, relative(place, uri))
			if taken[[2]string{schema, name}] {
				name = relative(place, uri)
			}
			taken[[2]string{schema, name}] = true
			out = append(out, table{schema, name, uri, o})
		}
	}
	slices.SortFunc(out, func(a, b table) int {
		return cmp.Or(cmp.Compare(a.schema, b.schema), cmp.Compare(a.name, b.name))
	})
	c.tables, c.listed = out, time.Now()
	return out, nil
}

// schemaName is what a place is called: its last element.
func schemaName(place string) string {
	switch base := path.Base(path.Clean(place)); base {
	case ".", "/", "..":
		return "main"
	default:
		return base
	}
}

// relative is a name without that of its place.
func relative(place, uri string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(uri, path.Clean(place)), "/")
	rest = strings.TrimPrefix(rest, "#")
	return cmp.Or(rest, path.Base(uri))
}

// find returns the table of a name of one to three parts. Letters count in upper and lower case unless that leaves
// none.
func (c *catalogue) find(ctx context.Context, name []string) (table, error) {
	all, err := c.all(ctx)
	if err != nil {
		return table{}, err
	}
	if len(name) == 3 {
		if !strings.EqualFold(name[0], catalogueName) {
			return table{}, fault.Invalidf("there is no catalogue %q, only %s", name[0], catalogueName)
		}
	}
	t, ok, err := one(all, name)
	if err == nil && !ok {
		err = fault.Invalidf("there is no table %q", strings.Join(name, "."))
	}
	return t, err
}

// one returns the table of a name of one to three parts, if there is one. Several are an error.
func one(all []table, name []string) (t table, ok bool, err error) {
	if len(name) == 3 {
		if !strings.EqualFold(name[0], catalogueName) {
			return table{}, false, nil
		}
		name = name[1:]
	}
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		var found []table
		for _, t := range all {
			if same(t.name, name[len(name)-1]) && (len(name) == 1 || same(t.schema, name[0])) {
				found = append(found, t)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], true, nil
		case len(found) > 1:
			return table{}, false, fault.Invalidf("the table %q is in several schemas: %s and %s",
				strings.Join(name, "."), found[0].schema, found[1].schema)
		}
	}
	return table{}, false, nil
}

// open opens a table.
func (t table) open(ctx context.Context) (*stoa.Table, error) {
	return stoa.Open(ctx, t.uri, t.options)
}

// newCatalogue returns the catalogue of places, read through o.Tree.
func newCatalogue(places []string, o stoa.OpenOptions) *catalogue {
	o.Formats = verbs.Formats()
	return &catalogue{places: places, options: o}
}
