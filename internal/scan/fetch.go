package scan

import (
	"context"
	"io"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

// A pager gives the pages of one chunk together with their bytes. Pages that follow each other in an object are
// read with one request, and the next request is under way while the pages of the last one are being decoded.
type pager struct {
	src   Source
	trace *Trace
	chunk format.Chunk
	rows  vec.Ranges // wanted; pages of known rows outside are passed over
	// bytes of one request; pages are read one by one, when they are decoded, if it is < 0
	ahead int64
	// why no row of the page can be of use: it is never fetched; "" = some may; nil = no such page
	prune func(format.Page) string
	queue []*pageBytes
	last  error // why Next ends: io.EOF, or damage
}

// pageBytes is a page and, once its request is done, its bytes.
type pageBytes struct {
	page  format.Page
	skip  string // why it is passed over: see pager.prune
	bytes [][]byte
	req   *request // nil: not asked for
}

// request reads the bytes of several pages.
type request struct {
	pages []*pageBytes
	done  chan struct{} // nil: the read is over
	buf   *[]byte
	left  int // pages not yet released
}

var bufPool = sync.Pool{New: func() any { return new([]byte) }}

// The gap between two spans that is rather read than skipped.
const mergeGap = 16 << 10

// peek is the next page; its bytes may still be under way. io.EOF after the last one.
func (p *pager) peek(ctx context.Context) (*pageBytes, error) {
	if len(p.queue) == 0 {
		p.pull(ctx, 1)
	}
	if len(p.queue) == 0 {
		return nil, p.last
	}
	return p.queue[0], nil
}

// pull asks the format for pages until n are queued.
func (p *pager) pull(ctx context.Context, n int) {
	for len(p.queue) < n && p.last == nil {
		page, err := p.next(ctx)
		if err != nil {
			p.last = err
			return
		}
		if page.First >= 0 && page.Rows >= 0 && !p.wanted(page.First, page.First+page.Rows) {
			continue
		}
		pb := &pageBytes{page: page}
		if p.prune != nil {
			pb.skip = p.prune(page)
		}
		p.queue = append(p.queue, pb)
	}
}

func (p *pager) next(ctx context.Context) (page format.Page, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Bugf("looking for the next page panicked: %v", r)
		}
	}()
	return p.chunk.Next(ctx)
}

func (p *pager) wanted(from, to int64) bool {
	for _, r := range p.rows {
		if r.From < to && from < r.To {
			return true
		}
	}
	return false
}

// drop is done with the first page.
func (p *pager) drop() {
	pb := p.queue[0]
	p.queue = p.queue[1:]
	p.release(pb)
}

func (p *pager) release(pb *pageBytes) {
	if r := pb.req; r != nil {
		if r.left--; r.left == 0 {
			r.wait()
			if r.buf != nil {
				bufPool.Put(r.buf)
				r.buf = nil
			}
		}
	}
}

func (r *request) wait() {
	if r.done != nil {
		<-r.done
		r.done = nil
	}
}

// bytes waits for the first page's bytes, and asks for those of the pages behind it.
func (p *pager) bytes(ctx context.Context) ([][]byte, error) {
	pb := p.queue[0]
	if pb.req == nil {
		p.ask(ctx, 0, false)
	}
	pb.req.wait()
	if p.ahead >= 0 {
		p.askAhead(ctx)
	}
	if pb.bytes == nil && len(pb.page.Spans) > 0 { // its request failed: once more, alone, for its own error
		return p.alone(ctx, pb)
	}
	return pb.bytes, nil
}

// askAhead starts the next request if none is under way.
func (p *pager) askAhead(ctx context.Context) {
	for i := 0; ; i++ {
		if i == len(p.queue) {
			p.pull(ctx, i+1)
			if i == len(p.queue) {
				return
			}
		}
		if p.queue[i].skip != "" {
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

// ask makes a request for queue[i] and its neighbours, up to ahead bytes.
func (p *pager) ask(ctx context.Context, i int, async bool) {
	r := &request{}
	var all fault.Span
	for k := i; ; k++ {
		if k == len(p.queue) {
			if p.ahead < 0 {
				break
			}
			p.pull(ctx, k+1)
			if k == len(p.queue) {
				break
			}
		}
		pb := p.queue[k]
		sp, ok := hull(pb.page)
		if pb.req != nil || k > i && (pb.page.Lost != nil || pb.skip != "") {
			break
		}
		switch {
		case len(r.pages) == 0:
			all = sp
		case ok && sp.Object == all.Object && sp.Off >= all.Off && sp.End() <= all.End():
			// another part of the same block
		case !ok || !mergeable(all, sp) || sp.End()-all.Off > p.ahead:
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
			break // several objects, or none: alone
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

// hull is the run of bytes that holds all spans of a page, if there is a reasonable one.
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

// fetch reads all of a request with one read. When that fails, the pages are left without bytes and each is read alone.
func (p *pager) fetch(ctx context.Context, r *request, all fault.Span) {
	if all.Len <= 0 || all.Len > p.src.Limits.Page || len(r.pages) == 1 && r.pages[0].page.Lost != nil {
		return
	}
	r.buf = bufPool.Get().(*[]byte)
	p.trace.fetched(all.Len)
	if err := p.src.Objects.readInto(ctx, r.buf, all); err != nil {
		return
	}
	for _, pb := range r.pages {
		pb.bytes = make([][]byte, len(pb.page.Spans))
		for i, s := range pb.page.Spans {
			pb.bytes[i] = (*r.buf)[s.Off-all.Off:][:s.Len:s.Len]
		}
	}
}

// alone reads one page's spans, each by itself.
func (p *pager) alone(ctx context.Context, pb *pageBytes) ([][]byte, error) {
	if pb.page.Lost != nil {
		return nil, pb.page.Lost
	}
	out := make([][]byte, len(pb.page.Spans))
	for i, s := range pb.page.Spans {
		if s.Len > p.src.Limits.Page {
			return nil, fault.Limitf(s, "", "%d bytes are more than a page may have (%d)", s.Len, p.src.Limits.Page)
		}
		p.trace.fetched(s.Len)
		if err := p.src.Objects.readInto(ctx, &out[i], s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// close waits for what is under way.
func (p *pager) close() {
	for len(p.queue) > 0 {
		p.drop()
	}
	p.last = io.EOF
}
