package convert

import (
	"context"
	"encoding/csv"
	"maps"
	"strconv"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/register"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
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

// fromSource adds to the options of a lake's table properties that say where it came from, and the partitions of the
// source, if --partition-by asks for them.
func (f *writeFlags) fromSource(t *stoa.Table, opts map[string]string, all bool) (map[string]string, error) {
	const property, by = "property", "partition-by"
	if !isLake(f.to) {
		return opts, nil
	}
	src := t.Sources()[0]
	l := src.Layout
	if opts = maps.Clone(opts); opts == nil {
		opts = map[string]string{}
	}
	terms := f.partitionsOf(l)
	switch {
	case opts[by] == "" && len(terms) > 0:
		f.flat = "the source is partitioned by " + strings.Join(terms, ", ") + ", the output is not; " +
			"--partition-by source keeps that"
	case opts[by] == ofSource && len(terms) > 0:
		opts[by] = strings.Join(terms, ",")
	case opts[by] == ofSource && all:
		delete(opts, by) // not all tables have partitions
	case opts[by] == ofSource:
		return nil, &cli.UseError{Message: "--partition-by source: " + src.Name + " has no partitions by columns",
			Hint: "name columns: --partition-by y,region"}
	}
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

// partitionsOf returns the terms of --partition-by that are the partitions and buckets of a source.
func (f *writeFlags) partitionsOf(l format.Layout) []string {
	terms := append([]string{}, l.Partitions...)
	if l.Buckets > 0 && len(l.BucketBy) == 1 && f.to == "iceberg" {
		terms = append(terms, "bucket("+strconv.Itoa(l.Buckets)+", "+l.BucketBy[0]+")")
	}
	return terms
}
