package verify

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/read"
	"stoa/internal/check"
	"stoa/region"
)

// verifier checks one file.
type verifier struct {
	*check.Reporter
	ctx    context.Context
	r      *read.Reader
	noSums bool
	depth  format.Depth
	base   region.Finding // what findings have in common where we are
	buf    []byte
	told   map[fault.Span]bool // pages of which the checksum was told
}

func newVerifier(ctx context.Context, part string, yield func(region.Finding) bool) *verifier {
	r := check.New(ctx, part, Codes, yield)
	r.Read, r.CodeOf = "parquet.unreadable", codeOf
	return &verifier{Reporter: r, ctx: ctx, base: region.Finding{Part: part, Rows: [2]int64{-1, -1}, Lost: -1}}
}

// Collect is a verifier of file name that appends to findings.
func Collect(name string, findings *[]region.Finding) *verifier {
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
func Findings(r *read.Reader) (out []region.Finding) {
	out = PartFindings(r.File)
	v := Collect(r.Target.Name, &out)
	if v.find("parquet.types", r.Untyped); r.NoVerify || r.Lost != nil {
		return out
	}
	r.Misplaced(func(err error) { v.find("parquet.misplaced", err) })
	return out
}

// PartFindings are the findings about neighbours.
func PartFindings(f *file.File) (out []region.Finding) {
	v := Collect(f.Target.Name, &out)
	for _, err := range f.MissingParts {
		v.find("parquet.part", err)
	}
	return out
}
