// Package catalogue is the only place in the command that names formats and the clients of stores.
package catalogue

import (
	"context"
	"slices"

	"stoa"
	"stoa/format"
	"stoa/format/delta"
	"stoa/format/hive"
	"stoa/format/iceberg"
	"stoa/format/icebergdelta"
	"stoa/format/kudu/kudufs"
	"stoa/format/kudubackup"
	_ "stoa/store/hdfs" // hdfs:// addresses
	_ "stoa/store/s3"   // s3:// addresses
	_ "stoa/store/web"  // https:// addresses
)

// Formats returns the formats that the command knows.
func Formats() []format.Format {
	return append(slices.Clone(stoa.Formats), iceberg.Format, delta.Format, icebergdelta.Format, kudubackup.Format,
		kudufs.Format, hive.New(stoa.Formats, kindOf))
}

// kindOf returns the format of a file in a directory with partitions.
func kindOf(ctx context.Context, tg format.Target) (*format.Format, error) {
	return stoa.Probe(ctx, tg, stoa.OpenOptions{Formats: stoa.Formats})
}
