package kudubackup

import (
	"math"

	"stoa/format/option"
	"stoa/format/parquet"
)

// WriteOptions are the options of writing, for stoa.CreateOptions.Typed. The zero value of each is the default.
type WriteOptions struct {
	Backup
	Parquet parquet.WriteOptions // of the files
}

// Backup are the options of a backup, without those of its Parquet files.
type Backup struct {
	Table    string   // the table's name; "": that of the Kudu table
	TableID  string   // 32 hexadecimal digits; "": that of the Kudu table, else a hash of the name
	Key      []string // columns of the primary key; nil: that of the Kudu table
	Replicas int      // of the restored table; 0: as many as the Kudu table had, else 3
	Time     int64    // of the backup, in milliseconds since 1970; 0: now
	PartRows int64    // maximum number of rows of a Parquet file; 0: 10000000
	Since    string   // an earlier backup: only what has changed since is written; "": everything
}

var writing = option.Table[Backup]{Format: "kudu-backup", For: "writing", Options: []option.Option[Backup]{
	option.Text("table", "NAME", "the table's name (default: that of the Kudu table)",
		func(o *Backup) *string { return &o.Table }),
	option.Text("table-id", "ID", "the table's id, 32 hexadecimal digits (default: that of the Kudu table, else made "+
		"of the name)", func(o *Backup) *string { return &o.TableID }),
	option.List("key", "COLUMN,…", "the primary key (default: that of the Kudu table)",
		func(o *Backup) *[]string { return &o.Key }),
	option.Int("replicas", "N", "how many replicas the restored table gets (default: as the Kudu table had, else 3)",
		func(o *Backup) *int { return &o.Replicas }, 1, 99),
	option.Int("time", "MS", "the time of the backup, in milliseconds since 1970 (default: now)",
		func(o *Backup) *int64 { return &o.Time }, 1, math.MaxInt64),
	option.Int("part-rows", "N", "rows of a Parquet file at most (default 10000000)",
		func(o *Backup) *int64 { return &o.PartRows }, 1, math.MaxInt64),
	option.Text("since", "BACKUP", "write what has changed since the newest backup of a root, or since the one that "+
		"is named (default: everything)", func(o *Backup) *string { return &o.Since }),
}}

// Strings returns the options as strings, as in --opt.
func (o WriteOptions) Strings() map[string]string {
	return option.Merge(o.Parquet.Strings(), writing.Strings(&o.Backup))
}

// Formats returns the formats to which the options apply.
func (WriteOptions) Formats() []string { return []string{"kudu-backup"} }
