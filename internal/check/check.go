// Package check is shared by all verifiers: findings are reported with the severity of their code and in the scope of a
// part and a column, errors become findings, and findings with one cause are folded into one incident. A format
// supplies rules (what contradicts what), not loops.
package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/region"
)

// Codes are the kinds of findings of a format.
type Codes []region.CodeDoc

// Severity returns the severity of a code; Error if the code is unknown.
func (c Codes) Severity(code string) region.Severity {
	if k := slices.IndexFunc(c, func(d region.CodeDoc) bool { return d.Code == code }); k >= 0 {
		return c[k].Severity
	}
	return region.Error
}

// Finding returns a finding with the given code about unknown rows. If its severity is below Error, no rows are lost.
func (c Codes) Finding(code string, at fault.Span, part, message string) region.Finding {
	f := region.Finding{Code: code, Severity: c.Severity(code), At: at, Part: part, Message: message, Rows: unknown,
		Lost: -1}
	if f.Severity < region.Error {
		f.Lost = 0
	}
	return f
}

// Of returns a finding for an error, at the position stated in the error. Errors that are not damage get a class
// (fault.NotDamage).
func (c Codes) Of(code string, err error, part string) region.Finding {
	var e *fault.Error
	if !errors.As(err, &e) {
		return c.Finding(code, fault.Span{}, part, oneLine(err.Error()))
	}
	f := c.Finding(code, e.At, part, Message(e))
	f.Path, f.Class = e.Path, fault.NotDamage(e)
	return f
}

// Reporter passes on the findings of a verifier, or of recovery, until the consumer stops. Its scope (Part, Table,
// Column, Whole) belongs to one goroutine; the state that several reporters share is safe for concurrent use.
type Reporter struct {
	Part, Column string     // of the findings reported next
	Table        string     // the same, unless Part implies it (see region.Finding)
	Whole        fault.Span // the file: positions are clipped to it, and errors without one get it; zero if unknown

	// Read is the code of errors that concern no byte of the file, Unsupported that of unsupported features.
	Read, Unsupported string
	// CodeOf maps an error of the file and the caller's code to a code; if nil, the caller's code is used.
	CodeOf func(code string, e *fault.Error) string

	*sink
}

// sink is the state shared by the reporters of one verification.
type sink struct {
	ctx   context.Context
	codes Codes

	mu      sync.Mutex
	yield   func(region.Finding) bool
	seen    map[string]bool // keys: see First
	errors  int             // number of errors emitted
	stopped bool
}

// New returns a Reporter for a part whose findings have the given codes. yield returns false to stop.
func New(ctx context.Context, part string, codes Codes, yield func(region.Finding) bool) *Reporter {
	return &Reporter{Part: part, sink: &sink{ctx: ctx, codes: codes, yield: yield, seen: map[string]bool{}}}
}

// For returns a reporter for another part and column; stopping one stops both.
func (r *Reporter) For(part, column string) *Reporter {
	out := *r
	out.Part, out.Column, out.Whole = part, column, fault.Span{}
	return &out
}

// Collect returns a Reporter that appends to findings.
func Collect(ctx context.Context, part string, codes Codes, findings *[]region.Finding) *Reporter {
	return New(ctx, part, codes, func(f region.Finding) bool { *findings = append(*findings, f); return true })
}

// Stopped reports whether the consumer stopped or the context ended. Loops must then end.
func (r *Reporter) Stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended()
}

func (s *sink) ended() bool { return s.stopped || s.ctx.Err() != nil }

// Errors returns the number of errors emitted by r and by the reporters that share its sink.
func (r *Reporter) Errors() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errors
}

// Emit passes on a finding. If its severity is below Error, no rows are lost.
func (r *Reporter) Emit(f region.Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.Table == "" && f.Part == r.Part {
		f.Table = r.Table
	}
	if f.Severity < region.Error {
		f.Lost = 0
	} else {
		r.errors++
	}
	if !r.ended() {
		r.stopped = !r.yield(f)
	}
}

// First reports whether a key is seen for the first time by any of the reporters that share a sink.
func (r *Reporter) First(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[key] {
		return false
	}
	r.seen[key] = true
	return true
}

// Scoped is Emit with the severity of the finding's code, and with the part and column of r.
func (r *Reporter) Scoped(f region.Finding) {
	f.Severity, f.Part, f.Column = r.codes.Severity(f.Code), r.Part, r.Column
	r.Emit(f)
}

var unknown = [2]int64{-1, -1}

// Report reports a finding that is not an error value; its rows are unknown.
func (r *Reporter) Report(code string, at fault.Span, path, format string, args ...any) {
	r.Scoped(region.Finding{Code: code, At: at, Path: path, Message: fmt.Sprintf(format, args...), Rows: unknown,
		Lost: -1})
}

// Rows is Report for half-open rows, of which lost are lost; -1 if unknown.
func (r *Reporter) Rows(code string, at fault.Span, rows [2]int64, lost int64, format string, args ...any) {
	r.Scoped(region.Finding{Code: code, At: at, Message: fmt.Sprintf(format, args...), Rows: rows, Lost: lost})
}

// Unclaimed reports bytes that no structure claims, and bytes that two structures claim, with the codes family.gap and
// family.overlap.
func (r *Reporter) Unclaimed(family string, gaps, overlaps []fault.Span) {
	for _, g := range gaps {
		r.Report(family+".gap", g, "", "%d bytes that no structure claims", g.Len)
	}
	for _, g := range overlaps {
		r.Report(family+".overlap", g, "", "%d bytes that two structures claim", g.Len)
	}
}

// Once is Report for findings that would apply to every page: only the first one with the same key is reported.
func (r *Reporter) Once(key, code string, at fault.Span, path, format string, args ...any) {
	if r.First(key) {
		r.Report(code, at, path, format, args...)
	}
}

// Blame reports an error about the rows [first, end); -1 if unknown.
func (r *Reporter) Blame(code string, err error, first, end int64) {
	f := region.Finding{Part: r.Part, Column: r.Column, Rows: [2]int64{first, end}, Lost: -1}
	if first >= 0 && end >= first {
		f.Lost = end - first
	}
	r.About(f, code, err)
}

// About reports an error with the part, column and rows of f. An error that is not about the file is reported with the
// code Read. Errors that are not damage, or may be none, get a class (region.Finding).
func (r *Reporter) About(f region.Finding, code string, err error) {
	if err == nil || r.Stopped() {
		return
	}
	var e *fault.Error
	switch {
	case !errors.As(err, &e):
		e, code = fault.New(fault.Bug, r.Whole, "", "%v", err), r.Read
	case r.CodeOf != nil:
		code = r.CodeOf(code, e)
	case e.Class == fault.Unsupported:
		code = r.Unsupported
	}
	f.Code, f.Severity, f.At, f.Path, f.Message = code, r.codes.Severity(code), r.place(e.At), e.Path, Message(e)
	if f.Class = fault.NotDamage(e); e.Class == fault.Unsupported {
		f.Class = e.Class
	}
	r.Emit(f)
}

// place clips a span to the file; a missing span becomes the whole file.
func (r *Reporter) place(at fault.Span) fault.Span {
	if at.Object == "" {
		at = r.Whole
	}
	if at.Object == "" {
		at.Object = r.Part
	}
	if r.Whole.Object != at.Object || r.Whole.Len == 0 {
		return at
	}
	from := min(max(at.Off, r.Whole.Off), r.Whole.End())
	return fault.Span{Object: at.Object, Off: from, Len: min(max(at.End(), from), r.Whole.End()) - from}
}

// Reason returns the reason of an error in one line, without its position, because a finding has its own.
func Reason(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return Message(e)
	}
	return err.Error()
}

// Message returns an error's reason with its cause, in one line.
func Message(e *fault.Error) string {
	m := e.Reason
	if e.Cause != nil {
		m = strings.TrimPrefix(m+": "+e.Cause.Error(), ": ")
	}
	return oneLine(m)
}

func oneLine(m string) string { return strings.ReplaceAll(m, "\n", "; ") }
