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

// Table is an open table. It is a format.Reader, Narrower and Overlayer: parts are tablets, row groups are DiskRowSets;
// rows that only the log has are one more row group, and its changes are in the overlays of the others.
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
	layout  format.Layout
	hash    []meta.HashDimension // that layout is about; none if there are no buckets
	Noticed []region.Finding     // when the directories were opened

	Recovered *Recovered // for recovery; nil: indexes and footers must be intact
	Vote      bool       // all blocks of a rowset decide its number of rows, not only the first
}

// Tablet is a tablet, of which one replica is read.
type Tablet struct {
	Replica
	Others []Replica // replicas on other servers

	mu       sync.Mutex // guards the rest, until Loaded
	Loaded   bool
	Sets     []*RowSet
	logged   *logRows     // rows that only the log has; nil: none
	reached  format.Reach // see Reached; zero: not known from the log
	ended    ended
	filler   filler
	Findings []region.Finding
	LogTo    uint64 // of a tablet that is made of its log: the hybrid time of the last operation
}

// ended is the hybrid time of the last committed operation of a log, and of the first one of which nothing says that it
// was committed.
type ended struct{ last, open uint64 }

// Later reports whether a finding is about the end of the tablet's log, which is later than the snapshot at: then it
// does not matter.
func (tb *Tablet) Later(x region.Finding, at uint64) bool {
	return x.Code == "kudu.wal.torn" && at <= tb.ended.last+1 || x.Code == "kudu.wal.uncommitted" && at <= tb.ended.open
}

// Replicas are all replicas of a tablet, the one that is read first.
func (tb *Tablet) Replicas() []Replica { return append([]Replica{tb.Replica}, tb.Others...) }

// Replica is a tablet as one server has it.
type Replica struct {
	FS *fs.FS
	*meta.Tablet
}

// RowSet is a DiskRowSet that is read.
type RowSet struct {
	*meta.RowSet
	Tablet        *Tablet
	index         int
	Rows          int64              // -1: unknown, as no block can be read
	Low, High     []byte             // first and last key, encoded; nil: unknown
	Changes       []wal.LoggedChange // only in the log; ascending by row
	unplaced      []wal.UnplacedChange
	twins         []twin
	contradiction error // its REDO files contradict its superblock in the number of live rows; nil: they do not
}

// filler caches the other replicas of a tablet, in which cells are searched for. It is safe for concurrent use.
type filler struct {
	mu    sync.Mutex
	open  map[*fs.FS]*fallback // by server of the replica
	last  LastChange           // of the replica that is read
	known bool                 // last is set
}

// fallback is another replica, opened.
type fallback struct {
	t    *Table
	last LastChange

	alike map[*RowSet]bool // rowsets that it has with the same cells, or not: see Table.alike
}

// logRows are the rows that only a tablet's log has, as they were at the snapshot, column by column.
type logRows struct {
	keys     [][]byte // encoded, ascending
	cells    []*vec.Vector
	findings []region.Finding
	lost     bool   // operations may be missing
	last     uint64 // hybrid time of the tablet's latest operation; 0: unknown
}

// Note makes a finding about the tablet.
func (tb *Tablet) Note(code string, at fault.Span, message string) region.Finding {
	return codes.Codes.Finding(code, at, tb.ID, message)
}

// Damaged reports whether err is about damage, that is, of class Corrupt.
func Damaged(err error) bool { return errors.Is(err, fault.Corrupt) }

// keep adds a finding, unless it is there already.
func (tb *Tablet) keep(x region.Finding) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if !slices.Contains(tb.Findings, x) {
		tb.Findings = append(tb.Findings, x)
	}
}

// BlockOf identifies a block: ids are unique within a server, and a table's tablets may be read from several.
type BlockOf struct {
	FS *fs.FS
	ID uint64
}

// Recovered are the blocks that were opened for recovery.
type Recovered struct {
	mu       sync.Mutex
	Files    map[BlockOf]RecoveredFile
	findings []region.Finding
}

// twin is a rowset of another replica that has the same bytes.
type twin struct {
	Replica
	set   *meta.RowSet
	proof *fs.Proof
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

// Source reads a file of a tree without keeping it open, because a table may have more blocks, each a file of its own,
// than a process may have open files.
type Source struct {
	tree store.Tree
	name string
	size int64
}

// NewSource returns the Source of a file in a tree, of which size bytes are used.
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

// RecoveredFile is a block that was opened for recovery or, if err is set, could not be opened.
type RecoveredFile struct {
	r   format.Reader
	g   format.RowGroup
	at  fault.Span
	err error
}
