package fetch

import (
	"context"
	"io"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan/internal/plan"
	"stoa/vec"
)

// Pager returns the pages of one chunk together with their bytes. Pages that are adjacent in an object are read with
// one request, and the next request is under way while the pages of the previous one are being decoded.
type Pager struct {
	Src   Source
	Trace *plan.Trace
	Chunk format.Chunk
	Rows  vec.Ranges // wanted; pages known to lie outside are skipped
	// bytes per request; if negative, pages are read one by one when they are decoded
	Ahead int64
	// Until is the row before which pages are needed now; 0: not known. A request to a local file does not go beyond
	// it, so that its buffer is free again for the next column while it is still in the cache of the processor.
	Until int64
	// returns why no row of the page can be of use, in which case it is never fetched; "" = some may; nil = no such
	// page
	Prune func(format.Page) string
	Work  *plan.Work // nil: pages are not counted
	of    vec.Range  // rows whose pages Close counts
	left  int64      // pages that Expect counted and that were not met yet
	queue []*PageBytes
	last  error // why there are no more pages: io.EOF, or damage
	place place // of the objects
}

// place says where pages are read from.
type place uint8

const (
	unknown place = iota
	local         // where nothing is read before it is needed
	elsewhere
)

// PageBytes is a page and, once its request is done, its bytes.
type PageBytes struct {
	Page  format.Page
	Skip  string // why it is skipped: see Pager.Prune
	Used  bool   // its content was asked for
	bytes [][]byte
	req   *request // nil: not requested yet
}

// request reads the bytes of several pages.
type request struct {
	pages []*PageBytes
	done  chan struct{} // closed after the read; nil: the read is over
	buf   *[]byte
	unmap func() error // if the bytes are a mapped file's
	left  int          // pages not yet released
}

var bufPool = sync.Pool{New: func() any { return new([]byte) }}

// mergeGap is the largest gap between two spans that is read rather than skipped.
const mergeGap = 16 << 10

// Peek returns the next page, whose bytes may still be under way, or io.EOF after the last one.
func (p *Pager) Peek(ctx context.Context) (*PageBytes, error) {
	if len(p.queue) == 0 {
		p.pull(ctx, 1)
	}
	if len(p.queue) == 0 {
		return nil, p.last
	}
	return p.queue[0], nil
}

// pull asks the format for pages until n are queued.
func (p *Pager) pull(ctx context.Context, n int) {
	for len(p.queue) < n && p.last == nil {
		page, err := p.Next(ctx)
		if err != nil {
			p.last = err
			return
		}
		if page.First >= 0 && page.Rows >= 0 && !p.wanted(page.First, page.First+page.Rows) {
			continue
		}
		pb := &PageBytes{Page: page}
		if p.Prune != nil {
			pb.Skip = p.Prune(page)
		}
		p.queue = append(p.queue, pb)
	}
}

func (p *Pager) Next(ctx context.Context) (page format.Page, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Panicked(r, "looking for the next page")
		}
	}()
	return p.Chunk.Next(ctx)
}

func (p *Pager) wanted(from, to int64) bool {
	for _, r := range p.Rows {
		if r.From < to && from < r.To {
			return true
		}
	}
	return false
}

// Drop removes the first page from the queue.
func (p *Pager) Drop() {
	pb := p.queue[0]
	p.queue = p.queue[1:]
	p.count(pb.Page, pb.Used)
	p.release(pb)
}

// count counts a page, unless it needs no bytes or is known to be lost.
func (p *Pager) count(page format.Page, used bool) {
	if p.Work == nil || !counts(page) {
		return
	}
	if p.left--; used {
		p.Work.Read.Add(1)
	} else {
		p.Work.Skipped.Add(1)
	}
}

func counts(p format.Page) bool { return len(p.Spans) > 0 && p.Lost == nil }

// Expect counts the pages of rows: those that the pager does not come to are skipped. again returns the same chunk with
// these rows. Nothing is read only to be counted: pages that would have to be found are counted if they are known when
// the pager is closed.
func (p *Pager) Expect(ctx context.Context, rows vec.Range, again func() (format.Chunk, error)) {
	if _, ok := p.Chunk.(format.Lister); ok {
		p.of = rows
	} else if all, err := again(); err == nil {
		p.expect(ctx, all, rows)
	}
}

func (p *Pager) expect(ctx context.Context, all format.Chunk, rows vec.Range) {
	other := Pager{Chunk: all}
	for {
		page, err := other.Next(ctx)
		if err != nil { // the scan reports damage, if it meets it
			return
		}
		before := page.First >= 0 && page.Rows >= 0 && page.First+page.Rows <= rows.From
		if counts(page) && !before && page.First < rows.To {
			p.left++
		}
	}
}

func (p *Pager) release(pb *PageBytes) {
	if r := pb.req; r != nil {
		if r.left--; r.left == 0 {
			r.wait()
			r.free()
		}
	}
}

// free ends the use of the request's bytes.
func (r *request) free() {
	if r.buf != nil {
		bufPool.Put(r.buf)
	}
	if r.unmap != nil {
		_ = r.unmap() // nothing was written
	}
	r.buf, r.unmap = nil, nil
}

func (r *request) wait() {
	if r.done != nil {
		<-r.done
		r.done = nil
	}
}

// Bytes waits for the first page's bytes, and requests those of the following pages.
func (p *Pager) Bytes(ctx context.Context) ([][]byte, error) {
	pb := p.queue[0]
	pb.Used = true
	if p.place == unknown && len(pb.Page.Spans) > 0 {
		if p.place = elsewhere; p.Src.Objects.local(ctx, pb.Page.Spans[0].Object) {
			p.place = local
		}
	}
	if pb.req == nil {
		p.ask(ctx, 0, false)
	}
	pb.req.wait()
	if p.Ahead >= 0 && p.place != local {
		p.askAhead(ctx)
	}
	if pb.bytes == nil && len(pb.Page.Spans) > 0 { // its request failed: read it once more, alone, to get its own error
		return p.alone(ctx, pb)
	}
	return pb.bytes, nil
}

// askAhead starts the next request if none is under way.
func (p *Pager) askAhead(ctx context.Context) {
	for i := 0; ; i++ {
		if i == len(p.queue) {
			p.pull(ctx, i+1)
			if i == len(p.queue) {
				return
			}
		}
		if p.queue[i].Skip != "" {
			continue
		}
		if p.queue[i].req == nil {
			p.ask(ctx, i, true)
			return
		}
		if p.queue[0].req != nil && p.queue[i].req != p.queue[0].req {
			return // one request ahead is enough
		}
	}
}

// ask makes a request for queue[i] and its neighbours, up to Ahead bytes.
func (p *Pager) ask(ctx context.Context, i int, async bool) {
	r := &request{}
	var all fault.Span
	for k := i; ; k++ {
		if k == len(p.queue) {
			if p.Ahead < 0 {
				break
			}
			p.pull(ctx, k+1)
			if k == len(p.queue) {
				break
			}
		}
		pb := p.queue[k]
		sp, ok := hull(pb.Page)
		if pb.req != nil || k > i && (pb.Page.Lost != nil || pb.Skip != "" || p.later(pb.Page)) {
			break
		}
		switch {
		case len(r.pages) == 0:
			all = sp
		case ok && sp.Object == all.Object && sp.Off >= all.Off && sp.End() <= all.End():
			// another part of the same block
		case !ok || !mergeable(all, sp) || sp.End()-all.Off > p.Ahead:
			ok = false
		default:
			all.Len = max(all.End(), sp.End()) - all.Off
		}
		if len(r.pages) > 0 && !ok {
			break
		}
		r.pages = append(r.pages, pb)
		pb.req = r
		r.left++
		if !ok {
			break // several objects, or none: read alone
		}
	}
	if !async {
		p.fetch(ctx, r, all)
		return
	}
	r.done = make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		p.fetch(ctx, r, all)
	}(r.done)
}

// later reports whether a page of a local file is not needed yet.
func (p *Pager) later(page format.Page) bool {
	return p.place == local && p.Until > 0 && page.First >= p.Until
}

// hull returns the smallest span that contains all spans of a page; false if the page has none, or has spans that are
// too far apart.
func hull(p format.Page) (fault.Span, bool) {
	if len(p.Spans) == 0 {
		return fault.Span{}, false
	}
	all := p.Spans[0]
	for _, s := range p.Spans[1:] {
		if !mergeable(all, s) {
			return fault.Span{}, false
		}
		all.Len = max(all.End(), s.End()) - all.Off
	}
	return all, true
}

func mergeable(a, b fault.Span) bool {
	return a.Object == b.Object && b.Off >= a.Off && b.Off <= a.End()+mergeGap
}

// fetch reads a whole request at once. If that fails, the pages remain without bytes and each is read alone.
func (p *Pager) fetch(ctx context.Context, r *request, all fault.Span) {
	if all.Len <= 0 || all.Len > p.Src.Limits.Page || len(r.pages) == 1 && r.pages[0].Page.Lost != nil {
		return
	}
	p.Trace.NoteRead(all.Len)
	var b []byte
	if b, r.unmap = p.Src.Objects.view(ctx, all); b == nil {
		r.buf = bufPool.Get().(*[]byte)
		if err := p.Src.Objects.readInto(ctx, r.buf, all); err != nil {
			return
		}
		b = *r.buf
	}
	for _, pb := range r.pages {
		pb.bytes = make([][]byte, len(pb.Page.Spans))
		for i, s := range pb.Page.Spans {
			pb.bytes[i] = b[s.Off-all.Off:][:s.Len:s.Len]
		}
	}
}

// alone reads the spans of one page, one by one.
func (p *Pager) alone(ctx context.Context, pb *PageBytes) ([][]byte, error) {
	if pb.Page.Lost != nil {
		return nil, pb.Page.Lost
	}
	out := make([][]byte, len(pb.Page.Spans))
	for i, s := range pb.Page.Spans {
		if s.Len > p.Src.Limits.Page {
			return nil, fault.Limitf(s, "",
				"%d bytes are more than a page may have (%d, page limit or memory limit)", s.Len, p.Src.Limits.Page)
		}
		p.Trace.NoteRead(s.Len)
		if err := p.Src.Objects.readInto(ctx, &out[i], s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Close waits for pending requests.
func (p *Pager) Close() {
	for len(p.queue) > 0 {
		p.Drop()
	}
	p.last = io.EOF
	if l, ok := p.Chunk.(format.Lister); ok && p.of.Len() > 0 {
		if all, known := l.Listed(p.of); known {
			p.expect(context.Background(), all, p.of) // reads nothing
		}
		p.of = vec.Range{}
	}
	if p.left > 0 {
		p.Work.Skipped.Add(p.left)
		p.left = 0
	}
}
