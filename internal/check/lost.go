package check

import (
	"cmp"

	"stoa/internal/sorted"
	"stoa/region"
)

// piece is a run of rows that a finding is about, and how many of them it reports as lost.
type piece struct {
	part, column   string
	from, to, lost int64
}

// totalLost returns how many rows, or cells in columns, findings report as lost; -1 if some cannot be counted. What
// several findings are about counts once, and so does a cell whose row is lost as a whole.
func totalLost(findings []region.Finding, listed []int) (n int64) {
	var all []piece
	for _, i := range listed {
		switch f := findings[i]; {
		case f.Severity == region.Error && f.Lost < 0:
			return -1
		case f.Lost <= 0:
		case f.Rows[0] < 0 || f.Rows[1] < f.Rows[0]:
			n += f.Lost
		default:
			all = append(all, piece{f.Part + "\x00" + f.Table, f.Column, f.Rows[0], f.Rows[1], f.Lost})
		}
	}
	// whole rows come first, as their column is ""
	sorted.By(all, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.column, b.column), cmp.Compare(a.from, b.from))
	})
	var joined []piece
	for _, p := range all {
		if k := len(joined) - 1; k >= 0 && joined[k].part == p.part && joined[k].column == p.column &&
			p.from < joined[k].to {
			joined[k].to, joined[k].lost = max(joined[k].to, p.to), joined[k].lost+p.lost
			continue
		}
		joined = append(joined, p)
	}
	rows := 0 // index of the first whole rows of the part
	for k, p := range joined {
		if joined[rows].part != p.part {
			rows = k
		}
		left := p.to - p.from
		for _, r := range joined[rows:k] {
			if r.column != "" || p.column == "" {
				break
			}
			left -= max(0, min(r.to, p.to)-max(r.from, p.from))
		}
		n += min(left, p.lost)
	}
	return n
}
