package iceberg

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
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
	o := d.plan()
	o.Parquet, o.Write = p.parquet, wo
	return lake.NewWriter(s, sc, stored, o), nil
}

// Plan prepares a catalogue for files that lake.Writer writes. Options of other formats are ignored.
func Plan(stored *arrow.Schema, last int, wo format.WriteOptions) (o lake.WriterOptions, err error) {
	p, err := parse(wo.Opts)
	if err != nil {
		return o, err
	}
	d, err := p.draft(stored, last, wo.Place)
	if err != nil {
		return o, err
	}
	return d.plan(), nil
}

// plan returns how the files of the table are written.
func (d *draft) plan() lake.WriterOptions {
	return lake.WriterOptions{Terms: d.terms, Sort: d.sorted, Size: d.o.FileSize, Dir: dataDir, Commit: d.commit}
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
	names, err := distinct(stored.Fields())
	if err != nil {
		return nil, err
	}
	if d.terms, err = lake.Bind(p.terms, stored); err != nil {
		return nil, err
	}
	if err := distinctTerms(d.terms, names); err != nil {
		return nil, err
	}
	d.sorted, err = lake.ParseOrder(p.SortOrder, stored)
	return d, err
}

func isNanos(l leaf) bool {
	t, ok := l.Type.(*arrow.TimestampType)
	return ok && t.Unit == arrow.Nanosecond
}

// writeKeys are the options of Create.
func writeKeys() []format.OptionKey { return slices.Concat(writing.Keys(), parquet.Format.WriteKeys) }
