package pred

import (
	"github.com/apache/arrow-go/v18/arrow"
	"stoa/fault"
	"stoa/vec"
)

var errStub = fault.Bugf("not yet")

// Bind resolves e's columns in sc and its literals to the columns' types.
func Bind(e *Expr, sc *arrow.Schema) (*Expr, error) { return nil, errStub }

// Eval returns those of the n entries, of those in in (nil: of all), for which e is TRUE.
func (e *Expr) Eval(n int, col func(path string) arrow.Array, in *vec.Sel) (*vec.Sel, error) {
	return nil, errStub
}

// EvalDict evaluates e, which must test one column only, once on the values of a dictionary. codes are those whose value makes e TRUE;
// null says whether e is TRUE for a row without a code (a null).
func (e *Expr) EvalDict(dict arrow.Array) (codes *vec.Sel, null bool, err error) {
	return nil, false, errStub
}

// Verdict is what bounds tell about an Expr.
type Verdict uint8

const (
	Some Verdict = iota // not known: some rows may match
	None                // no row makes the predicate TRUE
	All                 // every row makes it TRUE
)

// Bounds is what is known about the values of a column in some rows.
type Bounds struct {
	Min, Max       *Value
	MinCut, MaxCut bool
	NoNaN          bool
	Nulls          int64 // -1: unknown
	Rows           int64 // -1: unknown
}

// Prune tells from the bounds of columns (nil: unknown) what Eval would say.
func (e *Expr) Prune(bounds func(path string) *Bounds) Verdict { return Some }

// KeyRange is the range of column path outside of which e is certainly not TRUE. nil is no limit.
func (e *Expr) KeyRange(path string) (low, high *Value, lowIncl, highIncl bool) { return }

// Equals gives values such that e is certainly not TRUE unless column path equals one of them; false if there is no such list.
func (e *Expr) Equals(path string) ([]Value, bool) { return nil, false }

type leaf struct{}
