// Package format is the contract between the front of stoa and the formats.
//
// A format says where the pages are and how to decode one; everything else (fetching, read-ahead, filtering, damage
// policy, batches) is shared and lives in internal/scan.
//
// Numbers of rows and entries have exact meanings, see Page. A number that is not known is -1, and nothing may fail
// because a number is not known.
package format

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// Format is what a format can do. Name and Title are required; besides them a format needs:
//
//	to be read     Open, and Probe unless people always name the format; Extensions and Magics help to find its files
//	to be written  Create, and Extensions unless people always name the format; Reread where Open does not read it
//
// Everything else is optional: nil or empty means "this format does not do that", unless the field says otherwise.
// `stoa formats` prints that as the support matrix. Verify, Describe and Recover come together: of a format with Open
// but none of them, all three and List are derived from its pages (see ByPages).
type Format struct {
	Name       string   // the word for --from and --to
	Title      string   // a short description
	Extensions []string // with the dot; the first is the usual one, used by convert without --to
	Family     string   // the system whose files it reads, where several formats share one; "": its own name

	// Magics identify files of the format, and those files of its system that stoa does not read: where Probe refuses
	// such a file, errors name its kind.
	Magics []Magic
	// Marker is a directory whose presence makes its parent directory, with everything in it, one table; "": none.
	Marker string
	// Described reports, by their names, files that have no rows and that only Describe reads, such as a table's
	// metadata; nil: none.
	Described func(name string) bool
	// Owns reports whether a directory of the local file system holds a table that stoa wrote, and nothing else, so
	// that it may be replaced. nil: the format does not write directories.
	Owns func(dir string) bool

	Probe    func(ctx context.Context, t Target) (Match, error)
	List     func(ctx context.Context, t Target) iter.Seq2[Entry, error]
	Open     func(ctx context.Context, t Target, o OpenOptions) (Reader, error)
	Create   func(ctx context.Context, s store.Sink, sc *arrow.Schema, o WriteOptions) (Writer, error)
	Describe func(ctx context.Context, t Target, o DescribeOptions) iter.Seq2[region.Node, error]
	Verify   func(ctx context.Context, t Target, o OpenOptions) iter.Seq[region.Finding]
	Recover  func(ctx context.Context, t Target, o OpenOptions) (Reader, []region.Finding, error)
	// Unchecked returns a sentence that names the parts of a target without checksums, whose values may have changed
	// unnoticed as long as they still decode. "": every part has one. nil: everything in the format has checksums.
	Unchecked func(ctx context.Context, t Target, o OpenOptions) (string, error)
	// Bounds: files state bounds, counts or orders of their values that reading does not compare with them. Verify
	// compares them where no checksum covers the values, and so may know of wrong cells that a scan does not meet.
	Bounds bool

	// Claims returns a function that reports, for objects below the target's directory, whether the format's system
	// keeps files by that name there, even if nothing refers to them (dir: it is a directory). An object that Verify
	// did not open and this function does not claim is not part of the table. nil: the format has no directories, or
	// looks after its neighbours itself.
	Claims func(ctx context.Context, t Target, o OpenOptions) Claimer
	// Refers deletes from names the base names of all files that any state of a table with a catalogue refers to.
	Refers func(ctx context.Context, t Target, o OpenOptions, names map[string][]store.Info) error

	// Parted: the files of a table that Create divides (part-00000 and so on) record themselves which others should
	// exist. In other formats all numbers must be present.
	Parted bool
	// BackupMetadata is the name of a file which says that the files of this format next to it are a backup: files of
	// one table, written by one job, with no key in two of them. "": no job writes backups in the format.
	BackupMetadata string

	// Copy joins files into one without decoding their pages; nil: the format cannot. If why is not empty, it says why
	// these files cannot be copied, or must not be because something about them is wrong; they are then decoded and
	// written instead. The Copier writes, and checks the output before it becomes visible.
	Copy func(ctx context.Context, from []Reader, o CopyOptions) (c Copier, why string, err error)

	// Change changes tables of the format in place; nil: not supported.
	Change *Changer
	// Home returns the place of tables whose names begin with #, given the reading options; nil: the format has none.
	Home func(ctx context.Context, tree store.Tree, opts map[string]string) (string, error)
	// InUse returns an error of class Invalid if a server runs on the target and the options do not acknowledge that.
	// Any other trouble is not an error here. nil: there is no such server.
	InUse func(ctx context.Context, t Target) error
	// Together: places of the format may be parts of one place, such as the disks of a cluster, or hold copies of the
	// same rows. The front opens several of them as one.
	Together bool
	// Mend writes servers' directories anew from what all servers here hold; nil: not supported.
	Mend func(ctx context.Context, t Target, o MendOptions) ([]MendedServer, error)
	// Listings list the contents of a place in the format's own terms.
	Listings []Listing
	// Assemble begins to make a local directory one place of many tables, those in it included, which consists of the
	// directories Assembled; nil: each table is a place.
	Assemble  func(ctx context.Context, dir string) (Assembly, error)
	Assembled []string
	// Levels is how many directories below the given place Create writes to, beside other tables, if the format keeps
	// several in one place; 0: to the place itself.
	Levels int

	// Reread returns the format that reads the output of Create, with schema sc and options o, so that values come back
	// with their types; nil means this format. Another format applies to all files with its extensions or, if it has
	// none, to the place. false: the output cannot be read back with its original content.
	Reread func(sc *arrow.Schema, o WriteOptions) (Format, bool)
	// Retypes, in a format that Reread returned: with some options the output comes back with other types than were
	// written; the user is told which columns.
	Retypes bool
	// UTF8: strings that are not UTF-8 cannot be written, or not be read back. The front replaces them.
	UTF8 bool
	// Dictionaries reports whether Create accepts dictionaries with values of a type; nil: strings and bytes in any
	// layout. The front passes others as plain values, and codes that stand for a null as nulls.
	Dictionaries func(values arrow.DataType) bool
	// Alters returns the columns whose values Create changes because options ask for it; nil: none. The front counts
	// the values and reports them.
	Alters func(sc *arrow.Schema, o WriteOptions) []Alteration

	// WriteKeys are the options that Create accepts (--opt k=v), each with a line of help.
	WriteKeys []OptionKey
	// ReadKeys are the options of Open.
	ReadKeys []OptionKey
	// Codes are the kinds of findings that Verify, Recover and a Finder may report.
	Codes []region.CodeDoc
}

// ByPages reports whether the format has a reader, but none of Verify, Describe and Recover: then it is verified,
// described and listed by its parts, row groups, columns and pages, and recovered by reading it under a damage policy.
func (f *Format) ByPages() bool {
	return f.Open != nil && f.Verify == nil && f.Describe == nil && f.Recover == nil
}

// Magic is the bytes at an offset that identify a kind of file, and the name of the kind, with its article.
type Magic struct {
	Off         int
	Bytes, Name string
}

// Of reports whether a file that begins with head is of this kind.
func (m Magic) Of(head []byte) bool {
	return len(head) >= m.Off+len(m.Bytes) && string(head[m.Off:m.Off+len(m.Bytes)]) == m.Bytes
}

// System returns the system whose files the format reads; the formats of one system return the same name.
func (f *Format) System() string { return cmp.Or(f.Family, f.Name) }

// Listing is a list of the contents of a place, such as the blocks of a server's directories.
type Listing struct {
	Name    string // one word
	Columns []string
	// List passes each line to add, with one text per column. What cannot be read is noted in the line or in the
	// findings.
	List func(ctx context.Context, t Target, o OpenOptions, add func(values []string)) ([]region.Finding, error)
}

// ErrElsewhere is the cause of errors about tables that a place refers to but that are in places that were not given.
var ErrElsewhere = errors.New("elsewhere")

// OptionKey documents one --opt. A format's keys come from its option.Table.
type OptionKey struct{ Name, Values, Help string }

// Options are the options of a format as a struct of its package, such as parquet.WriteOptions and cfile.ReadOptions.
type Options interface {
	// Strings returns the options that are not the default, as --opt KEY=VALUE has them.
	Strings() map[string]string
	// Formats returns the names of the formats that have these options.
	Formats() []string
}

// Match is how sure Probe is that a place is of its format. The highest one wins.
type Match uint8

const (
	No      Match = iota
	Maybe         // by the name only
	Likely        // by structure that other formats might share
	Certain       // by magic and structure
)

// Target is a place to read.
type Target struct {
	Tree  store.Tree
	Name  string    // object or directory; "": the whole tree
	Table string    // the part after '#'
	At    vec.Range // part of the object (a CFile inside a container); zero = all of it

	// reading options and limits for List and Probe, which have no others; keys that the format does not know are
	// skipped
	Opts   map[string]string
	Limits Limits
}

// Entry is one table or file that List found.
type Entry struct {
	Table string // the part after '#'; "" for the place itself
	Kind  string // "column file", "table", "bloom file", …
	Rows  int64  // -1: not known
	Bytes int64
	Meta  []KeyValue
	Parts []Entry // its parts, if they have names: tablets, segments; their Table is that name
	// Findings are about the entry, or the place it lies in, as far as they can be made without reading data. Part is
	// the Table of the entry, or of the part of it that the finding is about.
	Findings []region.Finding

	// Dirs are directories that hold all that a reader of the entry reads; nil: it may be anywhere in the place.
	Dirs []string

	Place, Format string // filled in by the front
}

// KeyValue is a fact. Facts are printed in the order in which they are listed.
type KeyValue struct{ Key, Value string }

// OpenOptions are common to all formats.
type OpenOptions struct {
	Limits   Limits
	NoVerify bool              // do not verify checksums
	Mmap     bool              // pages of local files may be mapped into memory
	Depth    Depth             // for Verify
	Tracer   func(region.Node) // sees every structure that Open parses
	Opts     map[string]string // --opt k=v; a key that the format does not know is Invalid
}

// WithoutSums returns the sentence for Unchecked about a file of this many columns; bare ones have no checksums.
func WithoutSums(columns int, bare []string) string {
	const most = 5
	switch n := len(bare); {
	case n == 0:
		return ""
	case n >= columns:
		return "the file has no checksums"
	case n > most:
		return fmt.Sprintf("columns %s and %d more have no checksums", strings.Join(bare[:most], ", "), n-most)
	case n == 1:
		return "column " + bare[0] + " has no checksums"
	}
	return "columns " + strings.Join(bare, ", ") + " have no checksums"
}

// Claimer says whom an object belongs to. An error means that nothing is known, because the store did not answer or a
// budget was exceeded: it is reported, and counts as no claim.
type Claimer func(name string, dir bool) (Claim, error)

// Claim says whom an object in a directory belongs to.
type Claim uint8

const (
	Foreign    Claim = iota // not the system's
	AboveTable              // a directory that contains tables
	OfTable                 // a table's, or a file that the system keeps about tables
	Reported                // not the system's, and Verify has a finding about it
	// a file of the system by its name, but part of a table only if something refers to it; never a table of its own
	Loose
)

// Depth is how much Verify checks. Parts without checksums are decoded even at depth Sums, as their damage cannot be
// noticed otherwise.
type Depth uint8

const (
	Deep  Depth = iota // decode every value, and compare everything: indexes, bounds, counts, Bloom filters
	Sums               // structure, and the checksum of every page
	Quick              // structure: headers, footers, indexes, offsets, unclaimed bytes; no page is read
)

func (d Depth) String() string { return [...]string{"deep", "sums", "quick"}[d] }

// DescribeOptions are the options of Describe.
type DescribeOptions struct {
	OpenOptions
	Pages bool // also describe the inside of pages: headers, bitmaps, run by run
}

// Reader is an open file or table. All its methods are safe for concurrent use.
type Reader interface {
	Schema() *arrow.Schema
	Columns() []Column
	Order() []Key // nil: the reader promises no order
	Parts(ctx context.Context, q Query) iter.Seq2[Part, error]
	RowGroups(ctx context.Context, p Part, q Query) ([]RowGroup, error)
	// Chunk returns column col of row group g, from the page that holds rows.From on.
	Chunk(ctx context.Context, g RowGroup, col int, rows vec.Range) (Chunk, error)
	// Meta returns what `stoa meta` prints: facts of the whole file, in the format's own words.
	Meta() []KeyValue
	Close() error
}

// Query says what a scan wants. A reader may use Filter to skip rows, but need not.
type Query struct {
	Cols   []int // physical columns wanted, parents included
	Filter *pred.Expr
	// Want is for Batchers: the paths of child indices, from the schema's root, that are needed. Structs may be
	// returned with these children only. nil = all of Cols.
	Want [][]int
	// Strict: the scan ends at the first damage. Rows that may be outdated because changes to them are lost must not be
	// returned: RowGroups returns the damage instead.
	Strict bool
	// Batch is for Batchers: the maximum number of bytes of a batch, roughly. 0 leaves it to the reader.
	Batch int64
}

// Key is one column of a promised order.
type Key struct {
	Column     int // physical
	Descending bool
}

// Part is what a reader can name without opening: a file, a tablet. Row groups are merged by key within a part.
type Part struct {
	Ref   string // reopens the part in another process: a path, a tablet id
	Stamp string // its state at planning; a later change is an error, not another answer
	Rows  int64  // -1: not known without opening
	Bytes int64  // stored size of the query's columns, or of everything if that is all that is known
	// Bucket is 1 more than the number of the bucket to which all rows belong, by Layout; 0: it is not known, or there
	// is none.
	Bucket int
}

// RowGroup is a run of rows of a part whose columns can be read side by side, row by row.
type RowGroup struct {
	Part  string
	Index int
	Name  string // the format's name for it, for people: "rowset 3"; "" = its index
	Rows  int64  // physical rows; -1: known only by reading
	Bytes int64
	// First and last key, encoded so that bytes.Compare gives the order; nil = unknown. Row groups of one part whose
	// keys do not overlap need not be merged.
	Low, High []byte
	Bounds    map[int]pred.Bounds // by physical column; absent = unknown
}

// Has says what a physical column stores.
type Has uint8

const (
	Values  Has = 1 << iota
	Lengths     // of lists: one per entry; the items follow in the same stream if Values is set, too
	Levels      // Dremel definition and repetition levels
	// Validity: bools, one per row, that say whether the struct at the column's path is non-null. They do not affect
	// the numbers of entries: the leaves of the struct also have an entry for each row, which is null where the struct
	// is.
	Validity
)

// Column is a physical column, which has bytes of its own. Some leaves of the Arrow schema have none, and some physical
// columns are not leaves.
type Column struct {
	Name           string // the format's own
	Path           []int  // child indices from the schema's root
	Parent         int    // column whose lengths count our entries; -1: one entry per row
	Has            Has
	MaxDef, MaxRep uint8
	Type           arrow.DataType // of the vector that Decode fills
	Coded          bool           // strings may be stored as codes of a dictionary, judging by metadata
	Facts          ColumnFacts
}

// ColumnFacts is what `stoa stats` prints of a column; zero or -1 where it is not known.
type ColumnFacts struct {
	Encoding, Codec string
}

// ChunkFacts describes one column of one row group for `stoa stats`. Numbers that can be known only from its pages are
// -1, including the one in EncodedPages.
type ChunkFacts struct {
	Codec     string
	Encodings []EncodedPages // of data pages, in order of first use
	Pages     int64          // without the dictionary
	Stored    int64          // bytes of all pages with their headers, including the dictionary
	Raw       int64          // like Stored, after decompression of the bodies
	Bloom     int64          // bytes of the Bloom filter with its header; 0: it has none
}

// Kept is an optional interface of a Reader that knows which options of its format's writer preserve properties of the
// file besides rows, encodings and compression: an order, filters, encryption. A key with an empty value is a property
// that no option preserves.
type Kept interface {
	KeptBy() map[string]string
}

// EncodedPages is the number of pages with an encoding.
type EncodedPages struct {
	Encoding string `json:"encoding"`
	Pages    int64  `json:"pages"`
}

// Physical is an optional interface of a Reader that knows more about a chunk than Column.Facts and its pages say.
type Physical interface {
	// ChunkFacts reads only metadata and the headers of pages.
	ChunkFacts(ctx context.Context, g RowGroup, col int) (ChunkFacts, error)
}

// Placed is an optional interface of a Reader whose chunks are ranges of bytes.
type Placed interface {
	// Place returns where the bytes of a chunk are according to metadata that are read already; zero: not known.
	Place(g RowGroup, col int) fault.Span
}

// Chunk is one column of one row group. Decode is safe for concurrent use; Next is called by one goroutine only.
type Chunk interface {
	// Next returns the pages in row order, and io.EOF after the last one that rows needs.
	Next(ctx context.Context) (Page, error)
	// Dict returns the dictionary, if there is one, as a page.
	Dict() (Page, bool)
	// Decode appends the page's entries to dst, exactly t.N if that is not -1. It verifies checksums first.
	Decode(t *Task, dst *vec.Vector) error
}

// Page is the unit of fetching and decoding.
//
// A row belongs to the page in which its first entry lies. A page may begin with entries that continue the last row of
// the previous page. In flat columns Entries equals Rows. First is known if and only if Rows is known for all earlier
// pages.
type Page struct {
	Ordinal int // number in the chunk: key into the format's own immutable metadata
	// if the format cuts a block of very many rows into several pages: first entry within the block
	Sub   int64
	First int64 // rows that start before this page; -1: unknown
	Rows  int64 // rows that START in this page; -1: unknown
	// known to begin with a row; pages of repeated columns may otherwise begin with entries of the previous row
	Starts  bool
	Entries int64        // values + nulls + empty lists; -1: known from the parent's lengths, or only by decoding
	Spans   []fault.Span // including the page header; none = needs no bytes (constant, rows from the WAL)
	Lent    int          // how many of Spans, from the end, are pages of other columns, which this page refers to
	Raw     int64        // decoded size if it is declared somewhere, for the budget; 0: unknown
	Coded   bool         // every value is certainly a code of the chunk's dictionary
	Bounds  *pred.Bounds // of the values as stored, before any overlay
	Lost    error        // why it is known to be unreadable (recovered readers); such a page is never fetched
	Own     any          // opaque, the format's own: what Next learned and Decode needs
}

// Task is one page to decode.
type Task struct {
	Page    Page
	N       int64       // entries to append: Page.Entries, or else the sum of the parent's lengths, or else -1
	Bytes   [][]byte    // one per span, in the same order; valid only during the call, never aliased by dst
	Dict    *vec.Vector // decoded once, read-only; nil if Dict() returned none
	Want    *vec.Sel    // entries that will be used; nil = all. A hint: exactly N entries are appended in any case
	Scratch *vec.Arena  // this worker's; reset after the call
	// Filter has, for a column that the scan's filter tests, the terms of the filter's outermost "and" that involve
	// this column alone, bound; nil = none. Hits are the entries of Dict for which they are TRUE; nil if there is no
	// dictionary.
	Filter   *pred.Expr
	Hits     *vec.Sel
	Limits   Limits
	NoVerify bool

	// Set by Decode, for statistics: bytes of the page after decompression; 0: unknown.
	Raw int64
	// Set by Decode if it can tell without testing each value: the entries outside of Passed certainly fail Filter, and
	// their values in dst are undefined. nil = not known. By names the means in a word or two.
	Passed *vec.Sel
	By     string
}

// Pauser is an optional interface of a Writer of many files: another process can go on with what this one has written.
type Pauser interface {
	// Pause ends the files begun, and returns what Resume of another writer needs to know about those since the last
	// Pause: JSON.
	Pause(ctx context.Context) ([]byte, error)
	// Resume takes over the files of a Pause. They are in the sink already.
	Resume(state []byte) error
}

// Narrower is an optional interface of a Reader. Rows of g outside of the result certainly fail e; the filter decides
// about those within it. Both --where and get use it.
type Narrower interface {
	Narrow(ctx context.Context, g RowGroup, e *pred.Expr) (vec.Ranges, error)
}

// Overlayer is an optional interface of a Reader whose row groups have changes stored separately: deleted rows, newer
// cells.
type Overlayer interface {
	// Overlay returns the changes of g that concern the given columns; nil if rows are final as decoded.
	Overlay(ctx context.Context, g RowGroup, cols []int) (Overlay, error)
}

// Overlay is the changes of one row group. It is used by one goroutine, with ranges that begin in ascending order and
// may overlap, so it may cache the block that it decoded last. A format must not narrow by a column that an overlay
// touches.
type Overlay interface {
	Drops() bool          // may remove rows: RowGroup.Rows is then an upper bound; min and max remain safe for skipping
	Touches(col int) bool // may change values: bounds of col, and narrowing by it, are then void
	// Spans returns the bytes that Patch needs for rows. If they cannot be read, all of rows are suspect.
	Spans(rows vec.Range) []fault.Span
	// Patch returns the changes in rows; bytes are the contents of Spans, in the same order. Damage that affects only
	// some of the rows or columns is in the patch; a Corrupt error makes all of rows suspect. Suspect rows and cells
	// are never returned.
	Patch(ctx context.Context, rows vec.Range, bytes [][]byte) (*vec.Patch, error)
}

// Finder is an optional interface of a Reader that notices damage and irregularities that do not end reading: missing
// tablets, a log that ends in the middle. More may be found while rows are read.
type Finder interface {
	// Findings returns what was found so far, without duplicates.
	Findings() []region.Finding
}

// Layout describes how the values of a table's columns determine where its rows are stored. Columns are given by name.
type Layout struct {
	Partitions []string // one directory per value
	RangeBy    string   // a term, as month(ts), of which no value has rows of two ranges; "": none is known
	Sorted     []string // the order of rows within a row group (or a larger unit)
	Buckets    int      // 0: not bucketed
	BucketBy   []string // whose hash determines the bucket
	Order      []string // the order of rows within a part, as far as it ascends by top-level columns; see Reader.Order
	BucketHash string   // which hash: tables with the same one, and as many buckets, have equal values in equal buckets
	// further properties, by the names of the table's own system
	Properties map[string]string
}

// Layouter is an optional interface of a Reader that knows its table's layout.
type Layouter interface{ Layout() Layout }

// LayoutOf returns the layout of a reader's table; the zero value if it knows none.
func LayoutOf(r Reader) (l Layout) {
	if k, ok := r.(Layouter); ok {
		l = k.Layout()
	}
	for _, k := range r.Order() {
		c := r.Columns()[k.Column]
		if k.Descending || len(c.Path) > 1 {
			break
		}
		l.Order = append(l.Order, c.Name)
	}
	return l
}

// Presenter is an optional interface of a Reader that returns some types that differ from those its columns are decoded
// to: dictionaries, views, large strings, extensions.
type Presenter interface {
	// Stored returns Schema with the types of Columns, field by field and child by child; filters are bound to these.
	Stored() *arrow.Schema
	// Present converts an array of a field, or of a child of one, from its type in Stored to the corresponding type in
	// Schema. The caller releases both arrays.
	Present(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error)
}

// Batcher is an optional interface of a Reader whose bytes are not pages that stoa decodes itself: text and Arrow IPC.
// Such a reader returns finished batches and no Chunk (Chunk returns Unsupported). After a Corrupt error it may
// continue with the next batch if the caller goes on; the rows in between are lost. If the error knows which rows of
// the row group they are, it has a method LostRows() (from, to int64), half-open.
type Batcher interface {
	// Batches returns rows of g with all of q.Cols (top-level fields of the schema), in order, allocated from mem.
	Batches(ctx context.Context, g RowGroup, q Query, rows vec.Range,
		mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error]
}

// WriteOptions are common to all writers.
type WriteOptions struct {
	Rows  int64             // a hint; -1: unknown
	Opts  map[string]string // --opt k=v; a key that the format does not know is Invalid
	Mem   memory.Allocator  // nil = Go's
	Dir   bool              // the user asked for a directory (the place's name ended in /)
	Name  string            // the last part of the place's name, which some formats keep; "" = not known
	Place string            // where the output will be, as the user named it; "" = not known
	Trial bool              // nothing is written but a table without rows, to learn how its schema is read back
}

// Writer writes record batches with the schema that was passed to Create. It does not retain a batch after Write
// returns. The output becomes visible when Close returns nil; after an error the caller calls Abort.
type Writer interface {
	Write(ctx context.Context, b arrow.RecordBatch) error
	Close(ctx context.Context) (Summary, error)
	Abort(ctx context.Context) error
}

// Summary reports what was written.
type Summary struct {
	Rows  int64
	Bytes int64
	Files []string

	PagesCut int64 // in a copy of pages: how many were decoded and encoded again because they were divided; see Copier

	// Retyped are the columns that are read back as another type, because the output does not record the original one;
	// the two types may follow in parentheses.
	Retyped []string
	// Notes are facts about the output that its user should know, one sentence each: that other readers see more rows
	// than were written, say.
	Notes []string
	// Set by the front, which reads an output back before it becomes visible: whether this was done and the output
	// equals the input, and the columns that could not be compared. The front adds to Retyped.
	Checked   bool
	Unchecked []string
	// Altered has one finding for each column that the output does not store as it was written, such as strings in a
	// text that are not UTF-8. After recovery it also has rows that were neither written nor reported as lost.
	Altered []region.Finding
	// ByOption are the columns with values that the writer changed because an option asked for it.
	ByOption []Altered
}
