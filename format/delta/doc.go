// Package delta reads and writes tables of Delta Lake, whose rows are in Parquet:
//
//	….parquet                        the rows; in directories NAME=VALUE/ where the table is partitioned
//	_delta_log/N.json                version N of the table, 20 digits: what was added, removed, and said of the table
//	_delta_log/N.checkpoint….parquet all that holds at version N
//	deletion_vector_UUID.bin         the deleted rows of files
//	_delta_log/_last_checkpoint      the newest checkpoint
//
// It writes tables with one version, of the lowest protocol that their types allow. It reads tables with checkpoints of
// both versions, deletion vectors and column mapping.
//
// Source: the Delta transaction log protocol (PROTOCOL.md of delta-io/delta).
package delta
