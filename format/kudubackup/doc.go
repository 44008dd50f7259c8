// Package kudubackup reads and writes tables in the layout of Apache Kudu's own backup job, so that its restore job,
// which runs in Spark, can put them into a cluster:
//
//	OUT/ID-NAME/TIME/part-00000.parquet …   the rows; ID: the table's, NAME: its name as in a URL, TIME: milliseconds
//	                                        since 1970
//	OUT/ID-NAME/TIME/.kudu-metadata.json    a TableMetadataPB as JSON: columns, partitions, tablets
//
// Full backups are written. Incremental ones are read as well; their rows have an additional last column with the
// operation (RowAction). OUT is the restore job's root path.
//
// Sources: Kudu's java/kudu-backup-common (backup.proto, BackupIO, TableMetadata) and java/kudu-backup
// (KuduRestore). docs/formats/kudu-backup.md lists what was checked.
package kudubackup
