// Package kudufs writes tables as the directories of Apache Kudu servers, on which a master and a tablet server start
// without anything else: the way back into a cluster.
//
//	OUT/master    the master's: its catalogue, which knows the table and its tablets
//	OUT/tserver   the tablet server's: the tablets
//
// Each is one directory for everything (--fs_wal_dir, which Kudu takes for data, too, if no other is named):
//
//	instance                       InstanceMetadataPB
//	data/block_manager_instance    DirInstanceMetadataPB: the file block manager
//	data/AA/BB/CC/ID               blocks, each a CFile
//	tablet-meta/TABLET             TabletSuperBlockPB
//	consensus-meta/TABLET          ConsensusMetadataPB
//	wals/TABLET/wal-000000001      a log without operations
//
// # What is written
//
// Rows go to the tablet that the table's partitions say (partition.go), and are gathered there (tablet.go) until they
// are a rowset: a CFile a column, a bloom file of the keys, and, for keys of several columns, the ad-hoc index. Rowsets
// are sorted by key; their ranges may overlap, as in Kudu, but no key may be there twice (keys.go). There are no
// deltas: to Kudu all rows are older than its history.
//
// The same rows, schema and options make the same bytes, but for the moment that option time gives.
package kudufs
