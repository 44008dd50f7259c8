package ipc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/ipc/flat"
	"stoa/vec"
)

// skipDamaged prepares to continue after damage, and reports whether that is possible. The damage is in the message
// that was passed on last, in one that was not (unread), or in bytes that are no message, after which the next message
// is searched for. Dictionaries must not be skipped: later batches would be read with an older one.
func (w *walk) skipDamaged(unread bool) bool {
	m := w.batch
	if unread {
		m, w.bad = w.bad, nil
	}
	switch {
	case w.between: // the error was about missing or repeated batches
		w.between = false
		return true
	case m != nil && m.Kind == flat.RecordBatch:
		w.out.at += m.Batch.Rows
	case m != nil || !unread || w.r.hasDictionaries():
		return false
	case w.found > 0:
		w.at, w.found = w.found, 0
	default:
		at := w.search(w.at)
		if at < 0 {
			return false
		}
		w.at = at
	}
	w.done()
	return true
}

// checkPlace returns an error if a message cannot be at this position in the stream.
func (w *walk) checkPlace(m *message) error {
	marked := func(m *message) bool { return m.off-m.at.Off == int64(len(endMark)) }
	if marked(w.r.first) && !marked(m) { // either all messages have a mark, or none
		return fault.Corruptf(m.at, "message.length", "no mark in front of it, but the schema has one")
	}
	if m.Kind == flat.RecordBatch {
		return w.checkEnd(m)
	}
	if m.Kind != flat.Dictionary || !w.r.hasDictionaries() {
		return fault.Corruptf(m.at, "message.header", "a %s in the place of a batch", flat.KindName(m.Kind))
	}
	return nil
}

// checkEnd returns an error if the metadata length of a batch is wrong, or if bytes were inserted into it or removed
// from it, so that its values would be those of other bytes. That is the case if no message follows its end, but one
// begins within it; or so soon after it that there is no room for a damaged message between; or a later one is numbered
// as the next batch; or if the stream ends with its body. In a file that is read without its footer nothing else shows
// it.
func (w *walk) checkEnd(m *message) error {
	if m.off-m.at.Off != int64(len(mark)+4) { // before 0.15 there was no mark
		return nil
	}
	var next [len(mark) + 4]byte
	n, err := w.r.fill(w.ctx, next[:], m.at.End())
	if err != nil && err != errEnd {
		return err
	}
	k := min(n, len(mark))
	if string(next[:k]) == mark[:k] && (k > 0 || m.at.End() == w.r.base+w.r.size()) {
		if n > 0 || m.Body == 0 || w.r.noFooter {
			return nil
		}
		err := w.r.readFull(w.ctx, next[:], m.at.End()-int64(len(next)), "body")
		if err != nil || string(next[:]) != endMark {
			return err
		}
		w.bad, w.at = m, m.at.End()
		return fault.Corruptf(m.at, "message.length", "the stream ends with its body, and that with the end mark")
	}
	const minMessage = 64 // bytes
	rest, at := w.r.base+w.r.size()-m.at.End(), int64(-1)
	if rest < 0 || rest >= minMessage {
		at = w.search(m.at.Off)
	}
	switch {
	case at < 0 && n == 0: // the stream is truncated in its body
		return nil
	case at < 0, at >= m.at.End()+minMessage && !w.isNextBatch(m, at):
		if in, err := w.nextInPlace(m, rest); in || err != nil {
			return err
		}
		w.bad, w.at = m, m.at.End()
		return fault.Corruptf(m.at, "message.length", "what follows these bytes is neither a message nor the end mark")
	}
	w.found = at
	return fault.Corruptf(m.at, "message.length", "expected a message after these bytes, found one at %d", at)
}

// nextInPlace reports whether the bytes after m, which have no mark, begin where a message should nevertheless, so that
// no byte was inserted or removed before them. They are metadata after a prefix with one or both words damaged; or
// damaged metadata, recognized by its similarity to that of the other batches; or the end mark with such a prefix, or
// without a mark before another stream; or more zeros in a row than metadata has.
func (w *walk) nextInPlace(m *message, rest int64) (bool, error) {
	const zeros = 200
	off := m.at.End()
	var b [zeros]byte
	n, err := w.r.fill(w.ctx, b[:], off)
	if err != nil && err != errEnd {
		return false, err
	}
	if w.r.noFooter || n < len(endMark) {
		return false, nil
	}
	switch first, second := string(b[:len(mark)]), string(b[len(mark):len(endMark)]); {
	case rest == int64(len(endMark)):
		return second == endMark[len(mark):], nil
	case first == endMark[len(mark):] && second == mark:
		return string(b[len(endMark):][:len(mark)]) != endMark[len(mark):], nil
	case b == [zeros]byte{} && n == zeros:
		return true, nil
	}
	const maxMeta = 64 << 10
	meta := make([]byte, min(rest-int64(len(endMark)), maxMeta))
	if err := w.r.readFull(w.ctx, meta, off+int64(len(endMark)), "message"); err != nil {
		return false, err
	}
	_, err = flat.ParseHeader(meta)
	return err == nil || similar(m.meta, meta), nil
}

// similar reports whether most non-zero words of a batch's metadata are in b at the same offsets.
func similar(meta, b []byte) bool {
	words, same := 0, 0
	for i := 0; i+4 <= len(meta); i += 4 {
		if x := binary.LittleEndian.Uint32(meta[i:]); x != 0 {
			if words++; i+4 <= len(b) && x == binary.LittleEndian.Uint32(b[i:]) {
				same++
			}
		}
	}
	return 2*same > words
}

// isNextBatch reports whether the message at offset at is numbered as the batch after m.
func (w *walk) isNextBatch(m *message, at int64) bool {
	next, _, err := w.r.next(w.ctx, at, 0)
	return err == nil && next != nil && m.Place.Known && next.Place.Known && next.Place.Batch == m.Place.Batch+1
}

// checkZeros returns an error if a length of zero, which ends the stream, is followed by batches.
func (w *walk) checkZeros(end int64) error {
	if end == w.at || end == w.r.base+w.r.size() {
		return nil
	}
	at := w.search(w.at)
	if at < 0 {
		return nil
	}
	w.found = at
	return fault.Corruptf(w.r.span(w.at, at-w.at), "message", "zeros in the place of messages")
}

// search returns the offset of the next record batch after off, or -1. Messages begin with a mark (since 0.15), at any
// offset if bytes were inserted or removed before. A body may contain bytes that look like a message, such as a stream
// within a cell: a message counts only if messages follow each other from it to the end of the stream.
func (w *walk) search(off int64) int64 {
	if w.r.noFooter { // the end of the messages is unknown
		return -1
	}
	const window = 64 << 10
	work := int64(64 << 20) // bytes that may be searched
	buf := make([]byte, window)
	for at := off + 8; w.ctx.Err() == nil; at += window - 7 {
		n, err := w.r.fill(w.ctx, buf, at)
		if err != nil && err != errEnd {
			return -1
		}
		for i := 0; i+8 <= n && work > 0; i++ {
			if string(buf[i:i+4]) != mark || !w.r.isPrefix(buf[i:]) {
				continue
			}
			switch w.chainFrom(at+int64(i), &work) {
			case flat.RecordBatch:
				return at + int64(i)
			case flat.Schema: // of another stream, after this one
				return -1
			}
		}
		if err == errEnd || work <= 0 {
			return -1
		}
	}
	return -1
}

// chainFrom returns the kind of the message at off if batches follow it, one after the other, to the end; otherwise -1.
func (w *walk) chainFrom(off int64, work *int64) (kind int) {
	kind = -1
	for first := true; *work > 0; first = false {
		m, end, err := w.r.next(w.ctx, off, 0)
		*work -= 64
		switch {
		case err != nil:
			return -1
		case m == nil && !first && end == w.r.base+w.r.size():
			return kind
		case m == nil || m.Kind != flat.RecordBatch && !(first && m.Kind == flat.Schema) ||
			w.r.exists(w.ctx, m.data, m.Body, "body") != nil:
			return -1
		case first:
			kind = m.Kind
		}
		*work -= int64(len(m.meta))
		off = end
	}
	return -1
}

// walk reads the messages of a stream in order.
type walk struct {
	r         *reader
	ctx       context.Context
	out       *output
	mem       memory.Allocator
	at        int64
	dicts     []*message // in force
	batch     *message   // the last batch passed on
	bad       *message   // a message whose body could not be loaded
	preloaded bool       // dictionaries were loaded before the first batch, and are skipped later
	seq       int64      // the number of the expected batch
	numbered  bool       // batches are numbered
	last      bool       // the last batch was read
	between   bool       // the reported damage lies between two batches: none is skipped
	found     int64      // offset of the next message if a length was wrong, else 0
}

func (w *walk) release() {
	w.done()
	for _, d := range w.dicts {
		d.body.Release()
	}
}

func (w *walk) done() {
	if w.batch != nil {
		w.batch.body.Release()
		w.batch = nil
	}
}

// next returns the next message for the library. Batches before the wanted rows are skipped unread.
func (w *walk) next() (*message, error) {
	w.done()
	for {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		m, end, err := w.r.next(w.ctx, w.at, 0)
		if errors.Is(err, fault.Unsupported) { // the schema's message was supported
			return nil, &fault.Error{Class: fault.Corrupt, At: w.r.span(w.at, 8), Path: "message", Cause: err}
		}
		if err != nil {
			return nil, err
		}
		if m == nil {
			if err := w.checkZeros(end); err != nil {
				return nil, err
			}
			w.noteEnd(end)
			if err := w.checkLast(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		if err := w.checkPlace(m); err != nil {
			return nil, err
		}
		if m.Kind == flat.RecordBatch {
			if err := w.checkOrder(m, end); err != nil {
				return nil, err
			}
		}
		w.at = end
		if m.Kind == flat.Dictionary && w.preloaded || m.Place.End {
			continue
		}
		if m.Kind == flat.RecordBatch && w.out.at+m.Batch.Rows <= w.out.rows.From && m.Batch.Rows > 0 {
			w.out.at += m.Batch.Rows
			continue
		}
		if err := w.r.load(w.ctx, m, w.mem); err != nil {
			w.bad = m
			return nil, err
		}
		switch m.Kind {
		case flat.Dictionary:
			w.keep(m)
		case flat.RecordBatch:
			w.batch = m
		}
		return m, nil
	}
}

// noteEnd records how the stream ended: the bytes after its end mark begin at end, which is the end of the last message
// if there is no mark. The end of the messages of a file that is read without its footer is not known.
func (w *walk) noteEnd(end int64) {
	r := w.r
	if r.noFooter {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if end == w.at {
		r.cut = end
	} else if n := r.base + r.size() - end; n > 0 {
		r.rest = r.span(end, n)
	}
}

// keep remembers a dictionary, in case decoding must start again after a damaged batch.
func (w *walk) keep(m *message) {
	if !m.Delta {
		w.dicts = slices.DeleteFunc(w.dicts, func(d *message) bool {
			if d.ID == m.ID {
				d.body.Release()
			}
			return d.ID == m.ID
		})
	}
	w.dicts = append(w.dicts, m)
}

// checkOrder compares the position in a batch, which ends at end, with the batches before it. Missing batches are
// reported with their rows, and a repeated batch is skipped. Only stoa writes positions; a batch without one is not
// checked.
func (w *walk) checkOrder(m *message, end int64) error {
	p, at := m.Place, w.out.at
	if !p.Known || w.r.partial {
		w.seq++
		return nil
	}
	w.numbered = true
	bad := func(format string, args ...any) error { return fault.Corruptf(m.at, "message", format, args...) }
	switch {
	case w.last:
		w.at, w.between = end, true
		return bad("batch %d is after the last one", p.Batch)
	case p.Batch == w.seq && p.Row == at && !(p.End && m.Batch.Rows > 0):
		w.last = p.End
		w.seq++
		return nil
	case p.Batch < w.seq && p.Row <= at:
		w.at, w.between = end, true
		return bad("batch %d, from row %d on, after batch %d: it appears twice, or in another's place", p.Batch,
			p.Row, w.seq-1)
	case p.Batch > w.seq && p.Row >= at && !(p.End && m.Batch.Rows > 0):
		missing := bad("batch %d, from row %d on, where batch %d should be, from row %d on: "+
			"those between them are missing", p.Batch, p.Row, w.seq, at)
		w.seq, w.out.at, w.between = p.Batch, p.Row, true
		return &lostBatch{missing, vec.Range{From: at, To: p.Row}.Intersect(w.out.rows)}
	}
	w.at, w.bad, w.last = end, m, p.End
	w.seq++
	return bad("batch %d, from row %d on, where batch %d should be, from row %d on: one of the two numbers is damaged",
		p.Batch, p.Row, w.seq-1, at)
}

// checkLast returns an error if a stream whose batches have positions ends without the last one.
func (w *walk) checkLast() error {
	if !w.numbered || w.last {
		return nil
	}
	w.last = true
	return fault.Corruptf(w.r.span(w.at, 0), "message",
		"batch %d should be here, or the one that says that it is the last", w.seq)
}

// loadDictionaries loads the dictionaries of a file that is read without its footer, if they follow its batches. A file
// has one per column, so their order does not matter.
func (w *walk) loadDictionaries() error {
	if !w.r.noFooter || !w.r.hasDictionaries() {
		return nil
	}
	for first, off := true, w.at; ; first = false {
		m, end, err := w.r.next(w.ctx, off, 0)
		if err == nil && m != nil && m.Kind == flat.Dictionary {
			if first {
				return nil
			}
			err = w.r.load(w.ctx, m, w.mem)
		}
		switch {
		case err != nil && !isContentError(err):
			return err
		case err != nil || m == nil: // the lost batches show when they are read
			return nil
		case m.Kind == flat.Dictionary:
			w.keep(m)
			w.preloaded = true
		}
		off = end
	}
}
