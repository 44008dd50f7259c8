// Package kudubackup writes tables in the layout of Apache Kudu's own backup job, so that its restore job,
// which runs in Spark, can put them into a cluster:
//
//	OUT/ID-NAME/TIME/part-00000.parquet …   the rows; ID: the table's, NAME: its name as in a URL, TIME: milliseconds
//	                                        since 1970
//	OUT/ID-NAME/TIME/.kudu-metadata.json    a TableMetadataPB as JSON: columns, partitions, tablets
//
// Every backup that is written here is a full one. OUT is what the restore job calls its root path.
//
// Facts: Kudu's java/kudu-backup-common (backup.proto, BackupIO, TableMetadata) and java/kudu-backup
// (KuduRestore). What was checked is in docs/formats/kudu-backup.md.
package kudubackup
