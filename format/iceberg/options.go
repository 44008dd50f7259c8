package iceberg

import (
	"maps"
	"math"

	"stoa/format/internal/lake"
	"stoa/format/option"
	"stoa/format/parquet"
)

// WriteOptions are the options of writing, for stoa.CreateOptions.Typed. The zero value of each is the default.
type WriteOptions struct {
	Table
	Parquet parquet.WriteOptions // of the files
}

// Table are the options of a table, without those of its Parquet files.
type Table struct {
	Location string // the address at which readers find the table; "": where it is written
	Version  int    // of the format, 2 or 3; 0: 2, or 3 if a type requires it
	// PartitionBy are terms: a column, or year(c), month(c), day(c), hour(c), bucket(N, c), truncate(N, c). A name with
	// commas, parentheses or quotation marks is in quotation marks, and those in it are doubled.
	PartitionBy []string
	SortOrder   []string // the table's sort order; "desc" may follow a column. Files whose rows are in it are marked
	FileSize    int64    // bytes after which a file ends; 0: 512 MiB
	Properties  []string // KEY=VALUE
	Time        int64    // of the snapshot, in milliseconds since 1970; 0: now
}

var writing = option.Table[Table]{Format: "iceberg", For: "writing", Options: []option.Option[Table]{
	option.Text("location", "ADDRESS", "where readers find the table (default: where it is written)",
		func(o *Table) *string { return &o.Location }),
	option.Int("format-version", "N", "of the table, 2 or 3 (default: 3 where a type needs it, else 2)",
		func(o *Table) *int { return &o.Version }, 2, 3),
	lake.SpecOption("TERM[,TERM…]", "how rows are divided: a column, or year(c), month(c), day(c), "+
		"hour(c), bucket(16, c), truncate(4, c) (default: not at all)",
		func(o *Table) *[]string { return &o.PartitionBy }),
	option.List("sort-order", "COLUMN[ desc][,…]", "the table's sort order, which later writers keep; stoa does not "+
		"sort, and marks the files that are in it (default: that of the source)",
		func(o *Table) *[]string { return &o.SortOrder }),
	option.Size("file-size", "size at which a file is ended (default 512MiB)",
		func(o *Table) *int64 { return &o.FileSize }, 1, 1<<40),
	option.List("property", "KEY=VALUE[,…]", "properties of the table",
		func(o *Table) *[]string { return &o.Properties }),
	option.Int("snapshot-time", "MS", "time of the snapshot, in milliseconds since 1970 (default: now)",
		func(o *Table) *int64 { return &o.Time }, 1, math.MaxInt64),
}}

// Strings returns the options as strings, as in --opt.
func (o WriteOptions) Strings() map[string]string {
	return option.Merge(o.Parquet.Strings(), writing.Strings(&o.Table))
}

// Formats returns the formats to which the options apply.
func (WriteOptions) Formats() []string { return []string{"iceberg"} }

// ReadOptions are the options of reading, for stoa.OpenOptions.Typed. The zero value of each is the default.
type ReadOptions struct {
	At string // a snapshot's id, a branch or tag, or a time; "": the current snapshot
}

var reading = option.Table[ReadOptions]{Format: "iceberg", For: "reading", Options: []option.Option[ReadOptions]{
	option.Text("at", "MOMENT",
		"the snapshot: its id, a branch or a tag, or the newest that is not later than a time, "+
			"a day, or milliseconds since 1970", func(o *ReadOptions) *string { return &o.At }),
}}

// Strings returns the options as strings, as in --source-opt.
func (o ReadOptions) Strings() map[string]string { return reading.Strings(&o) }

// Formats returns the formats to which the options apply.
func (ReadOptions) Formats() []string { return []string{"iceberg"} }

// createOptions are the options of Create.
type createOptions struct {
	Table
	terms   []lake.Term
	parquet map[string]string
}

// parse divides the options into those of the table and those of its files.
func parse(opts map[string]string) (p createOptions, err error) {
	if p.Table, p.parquet, err = writing.ParseOwn(opts); err != nil { // parquet refuses unknown options
		return p, err
	}
	p.parquet = FileOptions(p.parquet)
	p.terms, err = lake.ParseSpec(p.PartitionBy)
	return p, err
}

// FileOptions returns options of Parquet files with defaults for the files of a table: the vectorized reader of Iceberg
// for Spark, 1.10, refuses texts in encodings other than PLAIN and dictionaries.
func FileOptions(opts map[string]string) map[string]string {
	out := map[string]string{"encoding": "plain"}
	if opts["version"] != "" {
		delete(out, "encoding") // which it implies, or may not go with
	}
	maps.Copy(out, opts)
	return out
}
