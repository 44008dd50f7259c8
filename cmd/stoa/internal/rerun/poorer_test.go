package rerun

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// The rows of a part as tests see them: two row groups of groupRows rows each, and rows of the log, one per moment.
const parts, groupRows = 3, 8

type rowOf struct {
	part, group string
	row         int64
}

// copyOf is a random copy of the sources: how far each part is there, and what of it is lost.
type copyOf struct {
	read Read
	rows map[rowOf]bool
}

// randomCopy makes a copy whose rows and losses add up. A part whose log is gone has an unknown loss, besides.
func randomCopy(rng *rand.Rand) copyOf {
	c := copyOf{read: Read{Reached: map[string]format.Reach{}}, rows: map[rowOf]bool{}}
	for p := range parts {
		part := fmt.Sprintf("part %d", p)
		moment := uint64(1 + rng.IntN(3))
		reach := format.Reach{Changed: moment, Known: moment, Time: "then", Rows: 2*groupRows + int64(moment)}
		for m := range moment {
			c.rows[rowOf{part, "the log", int64(m)}] = true
		}
		for g := range 2 {
			group := fmt.Sprintf("rowset %d", g)
			from, to, exact := int64(0), int64(0), true
			switch rng.IntN(4) {
			case 0:
				from = rng.Int64N(groupRows)
				to = from + 1 + rng.Int64N(groupRows-from)
			case 1:
				from, to, exact = rng.Int64N(2)*groupRows/2, groupRows, false
			}
			for row := range int64(groupRows) {
				if row < from || row >= to {
					c.rows[rowOf{part, group, row}] = true
				}
			}
			if to > from {
				l := region.Loss{Part: part, Group: g, Name: group, Rows: [2]int64{from, to}, Exact: exact,
					Err: fault.Unsupported}
				if !exact {
					l.Rows[1], reach.Rows = -1, reach.Rows-(to-from)
				}
				c.read.Losses = append(c.read.Losses, l)
			}
		}
		if rng.IntN(4) == 0 {
			c.read.Findings = append(c.read.Findings, region.Finding{Code: "kudu.wal.deleted", Severity: region.Error,
				Part: part, Rows: [2]int64{-1, -1}, Lost: -1})
		}
		c.read.Reached[part] = reach
	}
	c.read.Rows = int64(len(c.rows))
	return c
}

// lacks returns a row of a that b lacks; nil if there is none.
func lacks(a, b copyOf) *rowOf {
	for row := range a.rows {
		if !b.rows[row] {
			return &row
		}
	}
	return nil
}

// TestPoorerByPart: a copy is poorer than another one exactly if that has a row that it lacks, or tells of a loss of
// unknown extent that the other one does not know; whatever the numbers of rows, and however much later other parts
// are.
func TestPoorerByPart(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 1))
	replaced, kept := 0, 0
	for n := range 20_000 {
		then, now := randomCopy(rng), randomCopy(rng)
		if n%3 == 0 { // a few parts only have changed
			for p := range parts - 1 {
				now = withPart(now, then, fmt.Sprintf("part %d", p))
			}
		}
		why := now.read.Poorer(&then.read, true)
		gone := lacks(then, now)
		switch {
		case why == "" && gone != nil:
			t.Fatalf("%d: %v is replaced, which has %v, by %v", n, then.read, *gone, now.read)
		case why != "" && gone == nil && !newUnknown(then, now):
			t.Fatalf("%d: %v is not replaced by %v, which has all of its rows: %s", n, then.read, now.read, why)
		case why == "":
			replaced++
		default:
			kept++
		}
	}
	if replaced < 100 || kept < 100 {
		t.Errorf("%d replaced, %d kept", replaced, kept)
	}
}

// withPart returns a copy with one part of another copy.
func withPart(c, other copyOf, part string) copyOf {
	out := copyOf{read: Read{Reached: map[string]format.Reach{}}, rows: map[rowOf]bool{}}
	pick := func(from copyOf, want bool) {
		for p, r := range from.read.Reached {
			if (p == part) == want {
				out.read.Reached[p] = r
			}
		}
		for _, l := range from.read.Losses {
			if (l.Part == part) == want {
				out.read.Losses = append(out.read.Losses, l)
			}
		}
		for _, f := range from.read.Findings {
			if (f.Part == part) == want {
				out.read.Findings = append(out.read.Findings, f)
			}
		}
		for r := range from.rows {
			if (r.part == part) == want {
				out.rows[r] = true
			}
		}
	}
	pick(other, true)
	pick(c, false)
	out.read.Rows = int64(len(out.rows))
	return out
}

// newUnknown reports whether now has a loss of unknown extent in a part of which then had none.
func newUnknown(then, now copyOf) bool {
	known := func(c copyOf) map[string]int {
		out := map[string]int{}
		for _, f := range c.read.Findings {
			out[f.Part]++
		}
		for _, l := range c.read.Losses {
			if !l.Exact {
				out[l.Part+l.Name]++
			}
		}
		return out
	}
	was := known(then)
	for part, n := range known(now) {
		if n > was[part] {
			return true
		}
	}
	return false
}
