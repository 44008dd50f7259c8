// Package region has the types for the structure of a file (Node) and for its health (Finding).
package region

import (
	"stoa/fault"
)

// Kind is what the bytes of a Node are.
type Kind uint8

const (
	Struct Kind = iota // has parts, which follow with Depth+1; a Struct without parts owns its bytes itself
	Data               // a value or an opaque run of bytes
	Pad                // alignment, preallocation: nothing is lost if it changes
	Dead               // once used, now deleted; the content is irrelevant
	Gap                // claimed by no structure: a finding
)

func (k Kind) String() string {
	return [...]string{"struct", "data", "pad", "dead", "gap"}[k]
}

// Node is one region of a file, streamed in pre-order: children follow their parent with Depth+1.
type Node struct {
	Depth int
	Kind  Kind
	// the field's name in the format's documentation, with an index if there are several: "block[3]"
	Name  string
	Value string     // human-readable, may be empty
	At    fault.Span // in coordinates of the physical object
	Inner int64      // offset in the decoded bytes of the enclosing node; -1 if At is exact

	Codec string   // the compression of the data in it, in the format's word; "": that of the enclosing node
	Rows  [2]int64 // the rows of the table that it has values of, half-open; zero: not said
}

// Severity of a finding, in rising order.
type Severity uint8

const (
	Note    Severity = iota // unusual, but allowed
	Warning                 // against the format, nothing lost
	Error                   // something is or may be lost
)

func (s Severity) String() string {
	return [...]string{"note", "warning", "error"}[s]
}

// Finding is one result of verify.
type Finding struct {
	Code     string     // stable: "cfile.block.checksum"
	Severity Severity   //
	At       fault.Span // where
	Path     string     // which field
	Message  string     // one sentence
	Part     string     // what was being read (a file, a tablet)
	Table    string     // table of the part, if neither Part nor At says so; "" = they do, or it is not known
	Column   string     // the column concerned; "" = all
	Rows     [2]int64   // affected rows of the part, half-open; both -1 = not known
	Lost     int64      // lost rows (or cells, if Column is set); -1 = not known
	Gone     bool       // Column is lost in all rows, and its type is not known: the recovered table is without it
	// Limit: the subject of the finding was not checked because it exceeds a budget. That is not damage: stoa.Verify
	// yields it as an error after everything else was checked. Invalid: the request is impossible, and nothing was
	// checked: stoa.Verify ends with the error. Unsupported: the bytes may be intact, and no verb can read them: it is
	// no verdict of damage. 0: Code says everything.
	Class fault.Class
}

// Loss is data that a read under a damage policy, or recover, could not return. The manifest is a list of losses.
type Loss struct {
	Part   string // what was being read
	Group  int    // row group
	Name   string // the format's name for the row group: "rowset 3"; "" = it has none
	Column string // of the table, at top level; "" = all columns
	Stored string // the format's name for the lost part of Column; "" = as in the table, or all columns
	Rows   [2]int64
	Exact  bool  // false: an unknown number of rows is missing here
	Err    error // why, with the place
}
