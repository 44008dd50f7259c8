package parquet

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
	"stoa/region"
)

// verifier checks one file.
type verifier struct {
	*check.Reporter
	ctx    context.Context
	r      *Reader
	noSums bool
	depth  format.Depth
	base   region.Finding // what findings have in common where we are
	buf    []byte
	told   map[fault.Span]bool // pages of which the checksum was told
}

func newVerifier(ctx context.Context, part string, yield func(region.Finding) bool) *verifier {
	r := check.New(ctx, part, codes, yield)
	r.Read, r.CodeOf = "parquet.unreadable", codeOf
	return &verifier{Reporter: r, ctx: ctx, base: region.Finding{Part: part, Rows: [2]int64{-1, -1}, Lost: -1}}
}

// collect is a verifier of file name that appends to findings.
func collect(name string, findings *[]region.Finding) *verifier {
	return newVerifier(context.Background(), name, func(f region.Finding) bool {
		*findings = append(*findings, f)
		return true
	})
}

// codeOf is code for damage; an error that is none is parquet.unreadable or parquet.unsupported, whatever was
// looked at.
func codeOf(code string, e *fault.Error) string {
	switch e.Class {
	case fault.Corrupt:
		return code
	case fault.Unsupported:
		return "parquet.unsupported"
	}
	return "parquet.unreadable"
}

// find reports an error about where we are.
func (v *verifier) find(code string, err error) {
	var e *fault.Error
	if code == "parquet.column" && errors.As(err, &e) && v.told[e.At] {
		return
	}
	v.About(v.base, code, err)
}

// rows says that findings are about rows [from, to) of the row group.
func (v *verifier) rows(whole region.Finding, from, to int64) {
	v.base.Rows, v.base.Lost = [2]int64{whole.Rows[0] + from, whole.Rows[0] + to}, to-from
}

// unlessDamaged tells an error that is no damage: of what cannot be decoded the column was told.
func (v *verifier) unlessDamaged(code string, err error) {
	if !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
		v.find(code, err)
	}
}

// Findings is format.Finder's: what does not keep the file from being read, and makes the rows wrong.
func Findings(r *Reader) (out []region.Finding) {
	out = partFindings(r.File)
	v := collect(r.target.Name, &out)
	if v.find("parquet.types", r.untyped); r.noVerify || r.lost != nil {
		return out
	}
	r.misplaced(func(err error) { v.find("parquet.misplaced", err) })
	return out
}

// partFindings are the findings about neighbours.
func partFindings(f *File) (out []region.Finding) {
	v := collect(f.target.Name, &out)
	for _, err := range f.missing {
		v.find("parquet.part", err)
	}
	return out
}
