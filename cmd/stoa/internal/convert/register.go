package convert

import (
	"context"
	"encoding/csv"
	"maps"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/register"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
	"stoa/format/option"
)

// isIceberg reports whether a catalogue of Iceberg takes the tables of a format.
func isIceberg(format string) bool { return format == "iceberg" || format == "iceberg,delta" }

// isLake reports whether a format has snapshots.
func isLake(format string) bool { return isIceberg(format) || format == "delta" }

// findCatalogue finds the catalogue of --catalog, which must not have the table yet.
func (f *writeFlags) findCatalogue(ctx context.Context) error {
	if f.catalog == "" {
		return nil
	}
	if !isIceberg(f.to) {
		return cli.WrongUse("--catalog goes with --to iceberg")
	}
	var err error
	if f.catalogue, err = register.Parse(f.catalog, f.out); err != nil {
		return cli.WrongUse("%v", err)
	}
	return f.catalogue.Check(ctx)
}

// enrol makes a table of Iceberg known to the catalogue, or says how it becomes known.
func (f *writeFlags) enrol(ctx context.Context, a *cli.App) error {
	if !isIceberg(f.to) {
		return nil
	}
	location := register.Location(f.out)
	if opts, err := source.KeyValues("--opt", f.opts); err == nil && opts["location"] != "" {
		location = opts["location"]
	}
	if f.catalogue != nil {
		if err := f.catalogue.Register(ctx, location+"/metadata/v1.metadata.json"); err != nil {
			return err
		}
		a.Note("%s: in the catalogue as %s", f.out, f.catalogue.Name())
		return nil
	}
	if f.form != "json" {
		for _, l := range register.Lines(location) {
			a.Note("  %-9s  %s", l[0], l[1])
		}
	}
	return nil
}

// ofSource is the value of --partition-by for the partitions and buckets of the source.
const ofSource = "source"

// fromSource adds to the options of a lake's table, whose rows have schema sc, properties that say where it came from,
// the sort order of the source, and its partitions, if --partition-by asks for them.
func (f *writeFlags) fromSource(t *stoa.Table, sc *arrow.Schema, opts map[string]string, all bool) (map[string]string,
	error) {
	const property, by = "property", "partition-by"
	if !isLake(f.to) {
		return opts, nil
	}
	src := t.Sources()[0]
	l := src.Layout
	if opts = maps.Clone(opts); opts == nil {
		opts = map[string]string{}
	}
	terms, lost := f.partitionsOf(l)
	f.flat = f.notKept(opts[by], terms, lost)
	switch {
	case opts[by] == ofSource && len(terms) > 0:
		opts[by] = strings.Join(terms, ",")
	case opts[by] == ofSource && all:
		delete(opts, by) // not all tables have partitions
	case opts[by] == ofSource:
		return nil, &cli.UseError{Message: "--partition-by source: " + src.Name + " has no partitions by columns",
			Hint: "name columns: --partition-by y,region"}
	}
	f.orderFrom(t, sc, opts)
	var names []string
	for _, s := range t.Sources() {
		names = append(names, s.Name)
	}
	var text strings.Builder
	w := csv.NewWriter(&text)
	list := []string{"stoa.source=" + strings.Join(names, " "), "stoa.source.format=" + src.Format}
	for key, columns := range map[string][]string{"partitioned-by": l.Partitions, "sorted-by": l.Sorted,
		"bucketed-by": l.BucketBy} {
		if len(columns) > 0 {
			list = append(list, "stoa.source."+key+"="+strings.Join(columns, ","))
		}
	}
	for _, kv := range src.Meta { // of Kudu
		if kv.Key == "primary_key" || kv.Key == "partition_schema" {
			list = append(list, "stoa.source."+kv.Key+"="+kv.Value)
		}
	}
	if l.Buckets > 0 {
		list = append(list, "stoa.source.buckets="+strconv.Itoa(l.Buckets))
	}
	if err := w.Write(list); err != nil {
		return nil, err
	}
	w.Flush()
	if opts[property] != "" {
		text.WriteString("," + opts[property]) // those that were given come last, and hold
	}
	opts[property] = strings.ReplaceAll(text.String(), "\n", "")
	return opts, w.Error()
}

// orderFrom adds the sort order of the source to the options of a table of Iceberg that have none.
func (f *writeFlags) orderFrom(t *stoa.Table, sc *arrow.Schema, opts map[string]string) {
	const order, none = "sort-order", "none"
	switch sorted := sortOrder(t, sc); {
	case opts[order] == none:
		delete(opts, order)
	case opts[order] == "" && len(sorted) > 0 && isIceberg(f.to):
		opts[order] = strings.Join(sorted, ",")
	}
}

// sortOrder returns the columns of the source's order that rows of schema sc have: as many as have values in an order,
// and names that a list can hold.
func sortOrder(t *stoa.Table, sc *arrow.Schema) (out []string) {
	columns := t.Sources()[0].Layout.Sorted
	if len(columns) == 0 && t.Keyed() {
		columns = t.Keys()
	}
	for _, name := range columns {
		at := sc.FieldIndices(name)
		if len(at) != 1 || strings.ContainsAny(name, ", ") || arrow.IsNested(sc.Field(at[0]).Type.ID()) ||
			sc.Field(at[0]).Type.ID() == arrow.NULL {
			break
		}
		out = append(out, name)
	}
	return out
}

// notKept says which partitions and buckets of a source its table of a lake does not have, where by is --partition-by.
func (f *writeFlags) notKept(by string, terms, lost []string) []string {
	const is = "the source is partitioned by "
	var out []string
	if by == "" && len(terms) > 0 {
		out = append(out, is+strings.Join(terms, ", ")+", the output is not; --partition-by source keeps that")
	}
	if (by == "" || by == ofSource) && len(lost) > 0 {
		out = append(out, is+strings.Join(lost, ", ")+", which --to "+f.to+" cannot keep")
	}
	return out
}

// columns returns names of columns as they are written in --partition-by.
func columns(names []string) (out []string) {
	for _, name := range names {
		out = append(out, option.Quote(name, "()"))
	}
	return out
}

// partitionsOf returns the terms of --partition-by that are the partitions and buckets of a source, and those that the
// format cannot have.
func (f *writeFlags) partitionsOf(l format.Layout) (terms, lost []string) {
	terms = append(terms, columns(l.Partitions)...)
	add := func(term string, can bool) {
		if can {
			terms = append(terms, term)
		} else {
			lost = append(lost, term)
		}
	}
	if l.RangeBy != "" {
		add(l.RangeBy, f.to == "iceberg" || !strings.Contains(l.RangeBy, "("))
	}
	if l.Buckets > 0 {
		add("bucket("+strconv.Itoa(l.Buckets)+", "+strings.Join(columns(l.BucketBy), ", ")+")",
			f.to == "iceberg" && len(l.BucketBy) == 1)
	}
	return terms, lost
}
