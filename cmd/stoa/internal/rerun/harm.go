package rerun

import (
	"math"
	"slices"
	"strings"

	"stoa/region"
)

// harm is something that is lost of a part, or may be: what a loss says, or else a finding.
type harm struct {
	loss    *region.Loss
	finding *region.Finding
}

// harms returns what is lost, or may be, by part.
func (r *Read) harms() map[string][]harm {
	out := map[string][]harm{}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Severity >= region.Error && f.Lost != 0 {
			out[f.Part] = append(out[f.Part], harm{finding: f})
		}
	}
	for i := range r.Losses {
		l := &r.Losses[i]
		out[l.Part] = append(out[l.Part], harm{loss: l})
	}
	return out
}

// complete reports whether a finding only says that a tablet is made of a log that has all of its operations: nothing
// is lost up to where it was read.
func (r *Read) complete(h *harm) bool {
	f := h.finding
	return f != nil && f.Code == "kudu.tablet.rebuilt" && r.Reached[f.Part].Known > 0
}

// told reports whether what is lost of a part now was lost then, too. Of a loss without end, it must have had none then
// either.
func (now *Read) told(h *harm, then []harm) bool {
	if h.finding != nil {
		return slices.ContainsFunc(then, func(x harm) bool {
			return x.finding != nil && now.sameFinding(h.finding, x.finding)
		})
	}
	from, to := extent(h.loss)
	for from < to { // losses that were told may adjoin each other
		end := from
		for _, x := range then {
			if l := x.loss; l != nil && now.sameGroup(h.loss, l) {
				if a, b := extent(l); a <= from {
					end = max(end, b)
				}
			}
		}
		if end == from {
			return false
		}
		from = end
	}
	return true
}

// extent returns the rows of a loss, half-open.
func extent(l *region.Loss) (from, to int64) {
	from, to = max(0, l.Rows[0]), l.Rows[1]
	if !l.Exact || to < from {
		to = math.MaxInt64
	}
	return from, to
}

// sameGroup reports whether the rows of two losses of a part count in the same row group, and those of then are not
// there for what is lost now.
func (now *Read) sameGroup(is, then *region.Loss) bool {
	return is.Group == then.Group && is.Name == then.Name &&
		(!now.Nulls || then.Column == "" || then.Column == is.Column)
}

// lastOperations are the codes of findings about operations after those that were read: how far that was says more.
var lastOperations = []string{"kudu.wal.missing", "kudu.wal.deleted", "kudu.wal.short", "kudu.replica.behind"}

// sameFinding reports whether a finding says no more than one of then did. One of a number of rows that is not known
// may be about other rows, unless it says the same.
func (now *Read) sameFinding(is, then *region.Finding) bool {
	switch {
	case slices.Contains(lastOperations, is.Code):
		return slices.Contains(lastOperations, then.Code)
	case is.Code != then.Code || is.Column != then.Column:
		return false
	case strings.HasPrefix(is.Code, "output."): // a sum of what others say
		return true
	case is.Rows == then.Rows && is.Rows[0] >= 0 && then.Lost > 0:
		return is.Lost > 0 && is.Lost <= then.Lost
	}
	return is.Lost == then.Lost && is.Message == then.Message
}
