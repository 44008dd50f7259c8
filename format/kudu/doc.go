// Package kudu reads the directories of Apache Kudu servers, without Kudu and without changing them: tables in their
// current or an earlier state, including rows and changes that are only in the write-ahead log, even if files are
// damaged or missing.
//
// # Packages
//
// Each imports only those above it in this list, and this package imports all of them:
//
//	internal/pbc      protobuf containers: records with checksums
//	internal/codes    the codes of findings
//	internal/meta     superblocks and consensus metadata: schema, partitions, rowsets, keys and values
//	internal/fs       a server's directories: which they are, block managers, containers, where a block lies
//	internal/wal      the write-ahead log: segments, operations, and their replay
//	internal/table    tables of tablets: rowsets, deltas, history, replicas
//	internal/cluster  the directories of several servers: their tables, the master's catalogue, what is missing
//
// # Files
//
// A server has a WAL directory, a metadata directory (usually one of the others) and data directories (see
// internal/fs):
//
//	instance                          InstanceMetadataPB: the server's UUID; a key if data is encrypted
//	wals/TABLET/wal-000000001 …       the tablet's log, in segments (internal/wal)
//	tablet-meta/TABLET                TabletSuperBlockPB: schema, partition, rowsets and their blocks (internal/meta)
//	consensus-meta/TABLET             ConsensusMetadataPB: the peers
//	data/block_manager_instance       DirInstanceMetadataPB: block manager, UUIDs of this and all data directories
//	data/AA/BB/CC/ID                  file block manager: a block, which is a CFile
//	data/NAME.data, NAME.metadata     log block manager: blocks one after another, and the records of where
//	                                  they are (internal/fs)
//
// Instances, superblocks, consensus metadata and containers' records are protobuf containers (internal/pbc):
//
//	magic         8  "kuducntr"
//	version       4  1 or 2
//	checksum      4  version 2: CRC-32C of the 12 bytes before
//	records          length u32, [checksum u32 of the length, version 2], message, checksum u32; the first is a
//	                 ContainerSupHeaderPB, which names the type of the others
//
// Numbers are little-endian.
//
// # A tablet
//
// A table is divided into tablets by hash buckets and ranges of its key (internal/meta). A tablet's rows are in
// rowsets, whose ranges of keys may overlap; a key is live in at most one of them:
//
//	DiskRowSet    a CFile for each column, sorted by primary key; row n of all of them is one row
//	              ad-hoc index, for keys of several columns: the encoded key of each row; else the key column has a
//	              value index
//	              bloom file of the keys
//	              REDO delta files: changes since the rows were written; UNDO delta files: inverses of earlier changes
//	MemRowSet     in memory; after a stop only in the log, as are changes that were not flushed to delta files
//
// Each operation has a hybrid time: microseconds since 1970, shifted left by 12 bits, plus a counter. A snapshot at T
// has the operations with a time below T (internal/table/overlay.go). The base rows of a rowset are in the state of the
// time when they were written.
//
// # What the documents leave open
//
//   - A snapshot at T does not have the operations at T itself (TestCorpusTables: so the generator chose its times).
//   - The UNDO of an insertion is a deletion at the time of the insertion, so the row does not exist before. Rows
//     without one are older than the history that is kept: a snapshot from before that is refused
//     (internal/table/history.go, TestHistoryIsGone).
//   - A file may have the same row and time twice: both are applied, in order. The statistics of a delta file
//     count the columns that a reinsertion sets as updates.
//   - A reinsertion sets the columns that it names and leaves the others.
//   - A rowset without a block for a column is older than the column: its rows have the read default, or NULL
//     (d_alter in TestCorpusTables). Blocks of dropped columns stay until a compaction, and are skipped.
//   - The table's schema is that of the tablet with the highest schema version. Columns are identified by their ids,
//     never by their names.
//   - The upper 16 bits of a block's id are the index of its data directory; they are not part of its path.
//   - Reading does not check whether live rows of two rowsets have the same key: in an intact tablet none have.
package kudu
