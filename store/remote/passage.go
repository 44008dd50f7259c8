package remote

import "slices"

// passage is how far a stream has come. Several workers that read it take turns: one is at the front, the others read
// what it left to them.
type passage struct {
	next   int64  // offset at which the stream continues
	behind []span // parts before next that are left to other workers
}

// shortest is how many bytes are not worth keeping for another worker: parts of the page at which two of them meet.
const shortest = 64 << 10

// span is a range of bytes, [from, to).
type span struct{ from, to int64 }

// pass records that [from, to) has been read. What lies between next and from is left to other workers, if it is more
// than a gap.
func (p *passage) pass(from, to, gap int64) {
	var left []span
	for _, b := range p.behind {
		for _, l := range []span{{b.from, min(b.to, from)}, {max(b.from, to), b.to}} {
			if l.to-l.from > shortest {
				left = append(left, l)
			}
		}
	}
	if from > p.next+gap {
		left = append(left, span{p.next, from})
	}
	p.behind, p.next = left, max(p.next, to)
}

// abandon gives up parts that were left to other workers and lie more than most bytes back: they were skipped, not
// left. It returns how far back what remains begins.
func (p *passage) abandon(most int64) (back int64) {
	p.behind = slices.DeleteFunc(p.behind, func(b span) bool { return b.from < p.next-most })
	for _, b := range p.behind {
		back = max(back, p.next-b.from)
	}
	return back
}

// isRead reports whether [from, to) has been read by all workers.
func (p *passage) isRead(from, to int64) bool {
	return to <= p.next && !slices.ContainsFunc(p.behind, func(b span) bool { return from < b.to && to > b.from })
}
