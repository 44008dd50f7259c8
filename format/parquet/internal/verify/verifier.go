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
	ctx      context.Context
	r        *read.Reader
	noSums   bool
	proving  bool // all bounds in the footer are to be values, see Prove
	depth    format.Depth
	base     region.Finding // fields common to all findings at the current place
	buf      []byte
	badPages map[fault.Span]bool // pages whose wrong checksum was reported
}

func newVerifier(ctx context.Context, part string, yield func(region.Finding) bool) *verifier {
	r := check.New(ctx, part, Codes, yield)
	r.Read, r.CodeOf = "parquet.unreadable", codeOf
	return &verifier{Reporter: r, ctx: ctx, base: region.Finding{Part: part, Rows: [2]int64{-1, -1}, Lost: -1}}
}

// Collect returns a verifier of file name that appends to findings.
func Collect(name string, findings *[]region.Finding) *verifier {
	return newVerifier(context.Background(), name, func(f region.Finding) bool {
		*findings = append(*findings, f)
		return true
	})
}

// codeOf returns code for damage. Other errors become parquet.unreadable or parquet.unsupported, whatever was being
// checked.
func codeOf(code string, e *fault.Error) string {
	switch e.Class {
	case fault.Corrupt:
		return code
	case fault.Unsupported:
		return "parquet.unsupported"
	}
	return "parquet.unreadable"
}

// find reports an error at the current place; nil is not an error.
func (v *verifier) find(code string, err error) {
	var e *fault.Error
	if code == "parquet.column" && errors.As(err, &e) && v.badPages[e.At] {
		return
	}
	v.About(v.base, code, err)
}

// rows sets the current place to rows [from, to) of the row group.
func (v *verifier) rows(whole region.Finding, from, to int64) {
	v.base.Rows, v.base.Lost = [2]int64{whole.Rows[0] + from, whole.Rows[0] + to}, to-from
}

// findUnlessDamage reports an error unless it is damage, which is reported when the column is decoded.
func (v *verifier) findUnlessDamage(code string, err error) {
	if !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
		v.find(code, err)
	}
}

// Findings implements format.Finder. It returns faults that do not keep the file from being read but make rows wrong.
func Findings(r *read.Reader) (out []region.Finding) {
	out = PartFindings(r.File)
	v := Collect(r.Target.Name, &out)
	if v.find("parquet.types", r.SchemaError); r.NoVerify || r.Lost != nil {
		return out
	}
	r.Misplaced(func(err error) { v.find("parquet.misplaced", err) })
	return out
}

// PartFindings returns the findings about missing parts of the table.
func PartFindings(f *file.File) (out []region.Finding) {
	v := Collect(f.Target.Name, &out)
	for _, err := range f.MissingParts {
		v.find("parquet.part", err)
	}
	return out
}
