package kudu

import (
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/format/kudu/internal/wal"
)

// A server's directories: where they are, their blocks and containers.
type (
	BlockLine  = fs.BlockLine
	Carved     = fs.Carved
	Container  = fs.Container
	DataDir    = fs.DataDir
	Extent     = fs.Extent
	FS         = fs.FS
	FSOptions  = fs.FSOptions
	Instance   = fs.Instance
	Layout     = fs.Layout
	Place      = fs.Place
	Section    = fs.Section
	TableFacts = fs.TableFacts
	User       = fs.User
)

// The contents of superblocks and consensus metadata.
type (
	BlockRef        = meta.BlockRef
	Column          = meta.Column
	ColumnBlock     = meta.ColumnBlock
	Consensus       = meta.Consensus
	ExtraConfig     = meta.ExtraConfig
	Gap             = meta.Gap
	HashDimension   = meta.HashDimension
	KindedBlock     = meta.KindedBlock
	OpID            = meta.OpID
	Partition       = meta.Partition
	PartitionSchema = meta.PartitionSchema
	Peer            = meta.Peer
	RangeHash       = meta.RangeHash
	RowSet          = meta.RowSet
	Schema          = meta.Schema
	Tablet          = meta.Tablet
	TabletState     = meta.TabletState
	Txn             = meta.Txn
)

// Rows and changes that a tablet's log has and its rowsets lack.
type (
	KeyLookup      = wal.KeyLookup
	Logged         = wal.Logged
	LoggedChange   = wal.LoggedChange
	LoggedRow      = wal.LoggedRow
	UnplacedChange = wal.UnplacedChange
	WALFooter      = wal.Footer
	WALHeader      = wal.Header
)

// A table as described in the metadata of its Arrow schema under MetaTable.
type (
	HashMeta   = table.HashMeta
	RangeMeta  = table.RangeMeta
	TableMeta  = table.TableMeta
	TabletMeta = table.TabletMeta
)

// The states of tablets.
const (
	TabletCopying    = meta.TabletCopying
	TabletReady      = meta.TabletReady
	TabletDeleted    = meta.TabletDeleted
	TabletTombstoned = meta.TabletTombstoned
	TabletUnknown    = meta.TabletUnknown
)

// Keys of the metadata of an Arrow schema and its fields.
const (
	MetaKey           = meta.MetaKey
	MetaColumnID      = meta.MetaColumnID
	MetaDefault       = meta.MetaDefault
	MetaReadDefault   = meta.MetaReadDefault
	MetaAutoIncrement = meta.MetaAutoIncrement
	MetaImmutable     = meta.MetaImmutable
	MetaComment       = meta.MetaComment
	MetaTable         = table.MetaTable
)

// HexText begins the text of a string in metadata, as of a default or a bound, whose bytes follow in hexadecimal: one
// that is not UTF-8, or that begins with HexText itself.
const HexText = meta.HexText

// ColumnOf returns the column for an Arrow field, as in a table created from it.
var ColumnOf = meta.ColumnOf

// Functions on servers' directories.
var (
	CheckUnused = cluster.CheckUnused
	FindServers = fs.FindServers
	Layouts     = fs.Layouts
	ListFields  = fs.ListFields
	LockHolder  = fs.LockHolder
	Missing     = meta.Missing
	OpenFS      = fs.OpenFS
	Replay      = wal.Replay
	Unreadable  = cluster.Unreadable
)

// Codes are the findings about Kudu's directories. Verify also reports those of blocks: see package cfile.
var Codes = codes.Codes
