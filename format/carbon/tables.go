package carbon

import (
	"stoa/format/carbon/internal/change"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/mixed"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/table"
)

// Types for changing tables. Changes are made as CarbonData makes them: under its locks, and committed by one rename of
// tablestatus.
type (
	Cleaned       = change.Cleaned
	Compaction    = change.Compaction
	Deleted       = change.Deleted
	DictionaryWay = change.DictionaryWay
	IndexMerge    = change.IndexMerge
	Load          = change.Load
	LoadOptions   = change.LoadOptions
	LoadSummary   = change.LoadSummary
	Segment       = table.Segment
	TableSpec     = change.TableSpec
)

// Functions that change the table in a directory.
var (
	AddColumn          = change.AddColumn
	BeginCompaction    = change.BeginCompaction
	BeginLoad          = change.BeginLoad
	BeginUpdate        = change.BeginUpdate
	CheckText          = change.CheckText
	Clean              = change.Clean
	CreateTable        = change.CreateTable
	DeleteRows         = change.DeleteRows
	DeleteSegments     = change.DeleteSegments
	DropColumn         = change.DropColumn
	DropTable          = change.DropTable
	LockUpdate         = change.LockUpdate
	MergeIndexes       = change.MergeIndexes
	ParseDictionaryWay = change.ParseDictionaryWay
	PlanCompaction     = change.PlanCompaction
	UpdateRows         = change.UpdateRows
)

// Functions about a table or store.
var (
	Segments      = mixed.Segments
	StoreLocation = table.StoreLocation
)

// Names of columns that a table with the option positions has, and of field metadata.
const (
	FileColumn   = datafile.FileColumn
	RowColumn    = datafile.RowColumn
	MetaColumnID = schema.MetaColumnID
	MetaType     = schema.MetaType
)

// Codes are the finding codes of CarbonData.
var Codes = layout.Codes
