// Package iceberg reads and writes tables of Apache Iceberg, whose rows are in Parquet:
//
//	data/…                        the rows; NAME=VALUE/ directories where the table is partitioned
//	metadata/vN.metadata.json     the table: schemas, partition specs, snapshots
//	metadata/snap-….avro          a snapshot's list of manifests
//	metadata/…-mN.avro            a manifest: data files, or files of deleted rows, with counts and bounds of columns
//	metadata/version-hint.text    N, where no catalogue says it
//
// It writes tables of format version 2, or of 3 where a type needs it, with one snapshot. It reads tables of versions 1
// to 3: snapshots, schemas that changed by id, position and equality deletes, deletion vectors.
//
// Source: the Iceberg table specification (iceberg.apache.org/spec) and its Puffin specification.
package iceberg
