// Package region holds the words for the anatomy of a file (Node) and for its health (Finding).
package region

import (
	"stoa/fault"
)

// Kind says what the bytes of a Node are.
type Kind uint8

const (
	Struct Kind = iota // has parts, which follow with Depth+1; a Struct without parts owns its bytes itself
	Data               // a value or an opaque run of bytes
	Pad                // alignment, preallocation: nothing is lost if it changes
	Dead               // once used, now deleted; the content does not matter
	Gap                // claimed by no structure: a finding
)

func (k Kind) String() string {
	return [...]string{"struct", "data", "pad", "dead", "gap"}[k]
}

// Node is one region of a file, streamed in pre-order: children follow their parent with Depth+1.
type Node struct {
	Depth int
	Kind  Kind
	// the field's name as the format's document has it, with an index where there are several: "block[3]"
	Name  string
	Value string     // human-readable, may be empty
	At    fault.Span // in coordinates of the physical object
	Inner int64      // offset in the decoded bytes of the enclosing node; -1 when At is exact
}

// Severity of a finding, in rising order.
type Severity uint8

const (
	Note    Severity = iota // unusual, but allowed
	Warning                 // against the format, nothing lost
	Error                   // something is lost or may be
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
	Table    string     // whose part that is, where neither Part nor At says so; "" = they do, or it is not known
	Column   string     // the column concerned; "" = all
	Rows     [2]int64   // rows touched, half-open, of the part; both -1 = not known
	Lost     int64      // rows (or cells, if Column is set) lost; -1 = not known
	// fault.Limit: what the finding is about was not looked at, as it asks for more than a budget allows. That
	// is no damage: stoa.Verify yields it as an error, when all else was looked at. fault.Invalid: what was asked
	// for cannot be, and nothing was looked at: stoa.Verify ends with the error. 0: the code says it all.
	// It is fault.NotDamage of the error.
	Class fault.Class
}

// Loss is what a read under a damage policy, or recover, could not give. The manifest is a list of losses.
type Loss struct {
	Part   string // what was being read
	Group  int    // row group
	Name   string // of the row group, as the format calls it: "rowset 3"; "" = it has none
	Column string // of the table, the outermost one of nested ones; "" = all columns
	Stored string // how the format calls what of Column is lost; "" = as the table does, or it is all columns
	Rows   [2]int64
	Exact  bool  // false: something is missing here, the numbers are not known
	Err    error // why, with the place
}
