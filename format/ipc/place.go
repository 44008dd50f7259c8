package ipc

import (
	"stoa/fault"
	"stoa/vec"
)

// inPlace holds what a batch, which ends at end, says of its place in the stream against the batches before it. Those
// that are missing are told with their rows, and one that was there before is passed over. What a stream does not say
// is not asked for: only stoa writes it.
func (w *walk) inPlace(m *message, end int64) error {
	p, at := m.Place, w.out.at
	if !p.Known || w.r.partial {
		w.seq++
		return nil
	}
	w.told = true
	bad := func(format string, args ...any) error { return fault.Corruptf(m.at, "message", format, args...) }
	switch {
	case w.last:
		w.at, w.stay = end, true
		return bad("batch %d is behind the last one", p.Batch)
	case p.Batch == w.seq && p.Row == at && !(p.End && m.Batch.Rows > 0):
		w.last = p.End
		w.seq++
		return nil
	case p.Batch < w.seq && p.Row <= at:
		w.at, w.stay = end, true
		return bad("batch %d, from row %d on, behind batch %d: it is there twice, or in another's place", p.Batch,
			p.Row, w.seq-1)
	case p.Batch > w.seq && p.Row >= at && !(p.End && m.Batch.Rows > 0):
		missing := bad("batch %d, from row %d on, where batch %d should be, from row %d on: what is between them is gone",
			p.Batch, p.Row, w.seq, at)
		w.seq, w.out.at, w.stay = p.Batch, p.Row, true
		return &lostBatch{missing, vec.Range{From: at, To: p.Row}.Intersect(w.out.rows)}
	}
	w.at, w.bad, w.last = end, m, p.End
	w.seq++
	return bad("batch %d, from row %d on, where batch %d should be, from row %d on: one of the two numbers is damaged",
		p.Batch, p.Row, w.seq-1, at)
}

// short says whether a stream whose batches say their places ends without the last one.
func (w *walk) short() error {
	if !w.told || w.last {
		return nil
	}
	w.last = true
	return fault.Corruptf(w.r.span(w.at, 0), "message", "batch %d should be here, or the one that says that it is the last",
		w.seq)
}
