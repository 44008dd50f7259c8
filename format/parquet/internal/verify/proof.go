package verify

import (
	"context"

	"stoa/format/parquet/internal/read"
	"stoa/region"
)

// Proof is what the bytes where the footer has the chunks of a field say about whether they are these chunks.
type Proof int

const (
	Refuted  Proof = iota // they are not, or they are damaged
	Possible              // nothing says that they are not
	// Proven: the pages and their values are exactly those that the footer describes, and either each page has a
	// checksum, or the number of nulls, the least and the greatest value are as the footer says.
	Proven
)

// Prove examines the chunks of a field in a row group.
func Prove(ctx context.Context, r *read.Reader, group, field int) (Proof, error) {
	out := Proven
	v := newVerifier(ctx, r.Target.Name, func(f region.Finding) bool {
		switch {
		case f.Code == knownWrong && out == Proven, f.Severity == region.Error && f.Class != 0:
			out = Possible
		case f.Severity == region.Error:
			out = Refuted
		}
		return out == Proven
	})
	v.r, v.proving = r, true
	for _, w := range v.field(group, field, true) {
		if out == Proven && !v.proves(&w) {
			out = Possible
		}
	}
	return out, ctx.Err()
}

// proves reports whether a chunk without findings is proven.
func (v *verifier) proves(w *chunkWalk) bool {
	sums := w.dict == nil || w.dict.HasCRC
	for _, p := range w.data {
		sums = sums && p.HasCRC
	}
	if sums {
		return true
	}
	s := groupStats(v.r, w.group, w.leaf)
	if s == nil || s.Nulls == nil {
		return false
	}
	l, c := v.r.LeafOf(w.leaf), claim{}
	return *s.Nulls == w.values || v.r.Ordered(w.leaf) && v.bound(l, c, "", s.Min) != nil &&
		v.bound(l, c, "", s.Max) != nil
}
