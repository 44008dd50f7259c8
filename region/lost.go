package region

import (
	"cmp"
	"slices"
)

// LostRows is how many different rows losses touch: rows that are lost in several columns count once. exact is
// false if there are losses that cannot be counted.
func LostRows(losses []Loss) (n int64, exact bool) {
	exact = true
	var known []Loss
	for _, l := range losses {
		if !l.Exact || l.Rows[0] < 0 || l.Rows[1] < l.Rows[0] {
			exact = false
			continue
		}
		known = append(known, l)
	}
	slices.SortFunc(known, func(x, y Loss) int {
		return cmp.Or(cmp.Compare(x.Part, y.Part), cmp.Compare(x.Group, y.Group), cmp.Compare(x.Rows[0], y.Rows[0]))
	})
	var end int64
	for i, l := range known {
		if i == 0 || l.Part != known[i-1].Part || l.Group != known[i-1].Group {
			end = 0
		}
		n += max(0, l.Rows[1]-max(end, l.Rows[0]))
		end = max(end, l.Rows[1])
	}
	return n, exact
}

// Join appends a loss of which only the rows matter: with the one before it follows on, it becomes one.
func Join(losses []Loss, l Loss) []Loss {
	l.Err = nil
	if n := len(losses); n > 0 {
		last := &losses[n-1]
		if last.Part == l.Part && last.Group == l.Group && last.Column == l.Column && last.Exact && l.Exact &&
			last.Rows[1] == l.Rows[0] {
			last.Rows[1] = l.Rows[1]
			return losses
		}
	}
	return append(losses, l)
}
