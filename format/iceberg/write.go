package iceberg

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
	"stoa/format/parquet"
	"stoa/store"
)

// Rules are the rules for types in Iceberg's format version 3; version 2 has no nanoseconds.
var Rules = lake.Rules{Catalogue: "Iceberg", Times: true, Nanos: true, Fixed: true, UUIDs: true}

// LocationOf returns the address of a place; for a path in the local file system, file:// and the absolute path.
func LocationOf(place string) string {
	place = strings.TrimRight(place, "/")
	if strings.Contains(place, "://") {
		return place
	}
	if abs, err := filepath.Abs(place); err == nil {
		place = abs
	}
	return "file://" + filepath.ToSlash(place)
}

// create implements Format.Create.
func create(_ context.Context, s store.Sink, sc *arrow.Schema, wo format.WriteOptions) (format.Writer, error) {
	p, err := parse(wo.Opts)
	if err != nil {
		return nil, err
	}
	rules := Rules
	rules.Nanos = p.Version != 2
	stored, last, err := rules.Storage(sc)
	if err != nil {
		return nil, err
	}
	d, err := p.draft(stored, last, wo.Place)
	if err != nil {
		return nil, err
	}
	return lake.NewWriter(s, sc, stored, lake.WriterOptions{Terms: d.terms, Size: p.FileSize, Parquet: p.parquet,
		Dir: dataDir, Write: wo, Commit: d.commit}), nil
}

// Plan prepares a catalogue for files that another writer writes; c commits them. Options of other formats are ignored.
func Plan(stored *arrow.Schema, last int, wo format.WriteOptions) (c lake.Commit, terms []lake.Term, size int64,
	err error) {
	p, err := parse(wo.Opts)
	if err != nil {
		return nil, nil, 0, err
	}
	d, err := p.draft(stored, last, wo.Place)
	if err != nil {
		return nil, nil, 0, err
	}
	return d.commit, d.terms, p.FileSize, nil
}

// draft prepares a table with the options.
func (p createOptions) draft(stored *arrow.Schema, last int, place string) (*draft, error) {
	d := &draft{o: p, stored: stored, last: last, version: p.Version, location: strings.TrimRight(p.Location, "/")}
	if d.location == "" {
		d.location = LocationOf(place)
	}
	if d.version == 0 {
		if d.version = 2; slices.ContainsFunc(leavesOf(stored.Fields()), isNanos) {
			d.version = 3
		}
	}
	seen := map[string]bool{}
	for _, f := range stored.Fields() {
		if seen[f.Name] {
			return nil, fault.Invalidf("two columns are named %q: Iceberg cannot tell them apart", f.Name)
		}
		seen[f.Name] = true
	}
	var err error
	if d.terms, err = lake.Bind(p.terms, stored); err != nil {
		return nil, err
	}
	for _, t := range d.terms {
		if i := stored.FieldIndices(t.Name); len(i) > 0 && t.Transform != "identity" {
			return nil, fault.Invalidf("partition-by: the partition field of %s would have the name of column %s",
				t.Column,
				t.Name)
		}
	}
	return d, d.resolveSort()
}

func isNanos(l leaf) bool {
	t, ok := l.Type.(*arrow.TimestampType)
	return ok && t.Unit == arrow.Nanosecond
}

// resolveSort finds the columns of the sort order.
func (d *draft) resolveSort() error {
	for _, s := range d.o.SortOrder {
		name, down := strings.CutSuffix(strings.TrimSpace(s), " desc")
		at := d.stored.FieldIndices(strings.TrimSpace(name))
		if len(at) == 0 {
			return fault.Invalidf("sort-order: there is no column %q", name)
		}
		f := meta.SortField{Transform: "identity", Source: lake.IDOf(d.stored.Field(at[0])), Direction: "asc",
			Nulls: "nulls-first"}
		if down {
			f.Direction, f.Nulls = "desc", "nulls-last"
		}
		d.sorted = append(d.sorted, f)
	}
	return nil
}

// writeKeys are the options of Create.
func writeKeys() []format.OptionKey { return slices.Concat(writing.Keys(), parquet.Format.WriteKeys) }
