package delta

import (
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
	PartitionBy []string // columns; in quotation marks if a name has some, or parentheses
	FileSize    int64    // bytes after which a file ends; 0: 512 MiB
	Properties  []string // KEY=VALUE
	Time        int64    // of the version, in milliseconds since 1970; 0: now
}

var writing = option.Table[Table]{Format: "delta", For: "writing", Options: []option.Option[Table]{
	lake.SpecOption("COLUMN[,COLUMN…]", "columns by whose values rows are divided (default none)",
		func(o *Table) *[]string { return &o.PartitionBy }),
	option.Size("file-size", "size at which a file is ended (default 512MiB)",
		func(o *Table) *int64 { return &o.FileSize }, 1, 1<<40),
	option.List("property", "KEY=VALUE[,…]", "properties of the table",
		func(o *Table) *[]string { return &o.Properties }),
	option.Int("snapshot-time", "MS", "time of the version, in milliseconds since 1970 (default: now)",
		func(o *Table) *int64 { return &o.Time }, 1, math.MaxInt64),
}}

// Strings returns the options as strings, as in --opt.
func (o WriteOptions) Strings() map[string]string {
	return option.Merge(o.Parquet.Strings(), writing.Strings(&o.Table))
}

// Formats returns the formats to which the options apply.
func (WriteOptions) Formats() []string { return []string{"delta"} }

// ReadOptions are the options of reading, for stoa.OpenOptions.Typed. The zero value of each is the default.
type ReadOptions struct {
	At string // a version, or a time; "": the newest version
}

var reading = option.Table[ReadOptions]{Format: "delta", For: "reading", Options: []option.Option[ReadOptions]{
	option.Text("at", "MOMENT", "the version, or the newest that is not later than a time or a day",
		func(o *ReadOptions) *string { return &o.At }),
}}

// Strings returns the options as strings, as in --source-opt.
func (o ReadOptions) Strings() map[string]string { return reading.Strings(&o) }

// Formats returns the formats to which the options apply.
func (ReadOptions) Formats() []string { return []string{"delta"} }
