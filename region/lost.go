package region

import (
	"cmp"
	"errors"

	"stoa/fault"
	"stoa/internal/sorted"
)

// LostRows returns how many distinct rows are affected by losses: a row that is lost in several columns counts once.
// exact is false if there are losses that cannot be counted.
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
	sorted.By(known, func(x, y Loss) int {
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

// The maximum number of losses that Keep keeps with the place and reason of each, and in all. The limits are needed
// because a file can be made to lose its rows one by one.
const (
	maxReasons = 1 << 14
	maxLosses  = 1 << 18
)

// Keep appends a loss. After very many, adjacent losses of the same data are merged into one, with the place and reason
// of the first, and others keep only the class of their error. Finally all losses of the same data are merged into one
// that is not exact, as not all of its rows are lost.
func Keep(losses []Loss, l Loss) []Loss {
	n := len(losses)
	if n < maxReasons {
		return append(losses, l)
	}
	last := &losses[n-1]
	same := last.Part == l.Part && last.Group == l.Group && last.Column == l.Column && last.Stored == l.Stored
	switch {
	case same && last.Exact && l.Exact && last.Rows[1] == l.Rows[0]:
		last.Rows[1] = l.Rows[1]
		return losses
	case n >= maxLosses && same:
		last.Exact = false
		last.Rows[1] = l.Rows[1]
		return losses
	}
	var e *fault.Error
	if errors.As(l.Err, &e) {
		l.Err = e.Class
	}
	return append(losses, l)
}
