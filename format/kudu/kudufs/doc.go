// Package kudufs writes a table as directories of an Apache Kudu master and tablet server, which start on them as they
// are.
//
//	OUT/master    the master's: its catalogue, with the table and its tablets
//	OUT/tserver   the tablet server's: the tablets
//
// Each is one directory for everything (--fs_wal_dir, which Kudu also uses for data if no data directory is
// configured):
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
// Rows go to the tablet of their partition (partition.go), and are buffered there (tablet.go) until they make a rowset:
// a CFile for each column, a bloom filter of the keys, and, for keys of several columns, the ad-hoc index. Rowsets are
// sorted by key; their ranges may overlap, as in Kudu, but no two rows may have the same key (keys.go). There are no
// deltas: to Kudu all rows are older than its history.
//
// The same rows, schema and options, option time among them, make the same bytes.
package kudufs
