package table

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// Table is an open table. It is a format.Reader, Narrower and Overlayer: parts are tablets, row groups
// DiskRowSets, and what only the log has is one more row group, or changes of the others.
type Table struct {
	Tree     store.Tree
	Opts     Options
	Limits   format.Limits
	NoVerify bool

	Stored  meta.Schema
	sc      *arrow.Schema
	Cols    []format.Column
	Tablets []*Tablet // in the order of partitions
	byID    map[string]*Tablet
	meta    []format.KeyValue
	Noticed []region.Finding

	Recovered *Recovered // nil: indexes and footers must be sound
	Vote      bool       // how many rows a rowset has is asked of all its blocks, not of the first
}

// Tablet is a tablet that is read: one replica of it.
type Tablet struct {
	Replica
	Others []Replica // of other servers

	mu       sync.Mutex
	Loaded   bool
	Sets     []*RowSet
	logged   *logRows // rows that only the log has; nil: none
	filler   filler
	Findings []region.Finding
}

// Replicas are all of a tablet: that which is read is the first.
func (tb *Tablet) Replicas() []Replica { return append([]Replica{tb.Replica}, tb.Others...) }

// Replica is a tablet as one server has it.
type Replica struct {
	FS *fs.FS
	*meta.Tablet
}

// RowSet is a DiskRowSet that is read.
type RowSet struct {
	*meta.RowSet
	Tablet    *Tablet
	index     int
	Rows      int64 // -1: no block that can be read says
	Low, High []byte
	Changes   []wal.LoggedChange // only in the log; ascending by row
	unplaced  []wal.UnplacedChange
	twins     []twin
	strange   error // its REDO files leave another number of rows than its superblock says; nil: they do not
}

// filler looks for cells elsewhere. It is safe for concurrent use.
type filler struct {
	mu    sync.Mutex
	open  map[*fs.FS]*fallback // by the server that has the replica
	last  uint64               // latest operation of the replica that is read
	holes int
	known bool // last and holes are known
}

// fallback is another replica, opened.
type fallback struct {
	t     *Table
	last  uint64 // latest operation that it knows of
	holes int    // see lastTime
}

// logRows are the rows that only a tablet's log has, as they were at the snapshot, column by column.
type logRows struct {
	keys     [][]byte // encoded, ascending
	cells    []*vec.Vector
	findings []region.Finding
	lost     bool   // it need not have all that the tablet saw
	last     uint64 // no operation of the tablet is later; 0: not known
}

// Note is a finding about a tablet.
func (tb *Tablet) Note(code string, at fault.Span, message string) region.Finding {
	return codes.Codes.Finding(code, at, tb.ID, message)
}

// Damaged reports whether err says that bytes are damaged, rather than that they could not be read.
func Damaged(err error) bool { return errors.Is(err, fault.Corrupt) }

// keep keeps a finding, once.
func (tb *Tablet) keep(x region.Finding) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if !slices.Contains(tb.Findings, x) {
		tb.Findings = append(tb.Findings, x)
	}
}

// Recovered are the blocks that were opened for recovery.
type Recovered struct {
	mu       sync.Mutex
	Files    map[uint64]RecoveredFile
	findings []region.Finding
}

// twin is a rowset of another replica that has the same bytes.
type twin struct {
	Replica
	set *meta.RowSet
}

// Name is the table's name.
func (t *Table) Name() string {
	if len(t.Tablets) == 0 {
		return ""
	}
	return t.Tablets[0].Table
}

func (t *Table) cfileOptions() format.OpenOptions {
	return format.OpenOptions{Limits: t.Limits, NoVerify: t.NoVerify}
}

// Source reads an object of a tree and keeps nothing open: a table may have more blocks, each a file, than a
// process may have files.
type Source struct {
	tree store.Tree
	name string
	size int64
}

// NewSource is the object of a tree, as far as size bytes.
func NewSource(tree store.Tree, name string, size int64) Source { return Source{tree, name, size} }

func (s Source) Size() int64 { return s.size }

func (s Source) Close() error { return nil }

func (s Source) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	src, err := s.tree.Open(ctx, s.name)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	return src.ReadAt(ctx, p, off)
}

type RecoveredFile struct {
	r   format.Reader
	g   format.RowGroup
	at  fault.Span
	err error
}
