package cfile

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/codec"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// file is an open CFile: its header and footer, and how to get at its blocks.
type file struct {
	src      store.Source
	at       fault.Span // the whole CFile; blocks are counted from its beginning
	header   Header
	footer   Footer
	head     []byte // the bytes of the header, with its checksum
	foot     []byte // the bytes of the footer, with its checksum
	codec    *codec.Codec
	limits   format.Limits
	noVerify bool
	nodes    nodes
}

const (
	readHead = 512      // of the beginning, if the file is too large to be read whole
	readTail = 64 << 10 // of the end, with one read; a longer footer takes another
)

// openFile reads footer and header. What it understood is in f also when it fails.
func openFile(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (f *file, err error) {
	f = &file{src: src, at: at, limits: o.Limits.WithDefaults(), noVerify: o.NoVerify}
	if at.Len < minFile {
		return f, fault.Corruptf(at, "", "%d bytes are too few for a CFile", at.Len)
	}
	n := min(at.Len, readTail)
	end := make([]byte, n)
	if err := format.ReadFull(ctx, src, at.Sub(at.Len-n, n), "footer", end); err != nil {
		return f, err
	}
	footErr := f.readFooter(ctx, end)
	if err := f.readHeader(ctx, end, footErr == nil && f.footer.Checksums()); err != nil && footErr == nil {
		return f, err
	}
	if o.Tracer != nil {
		f.traceHeader(o.Tracer)
		f.traceFooter(o.Tracer)
	}
	if footErr != nil {
		return f, footErr
	}
	return f, f.settle()
}

// settle looks at what the footer says of the blocks.
func (f *file) settle() (err error) {
	if f.codec, err = codecOf(f.footer.Compression); err != nil {
		return err
	}
	if reason := checkIndexes(&f.footer); reason != "" {
		return fault.Corruptf(f.footSpan(), "footer", "%s", reason)
	}
	return nil
}

func (f *file) headSpan() fault.Span { return f.at.Sub(0, int64(len(f.head))) }
func (f *file) footSpan() fault.Span {
	return f.at.Sub(f.at.Len-int64(len(f.foot)), int64(len(f.foot)))
}

// readFooter parses the footer in end, the last bytes of the file, or reads more of them.
func (f *file) readFooter(ctx context.Context, end []byte) error {
	c := wire.NewCursor(end[len(end)-tail:], f.at.Sub(f.at.Len-tail, tail), "footer")
	_, n := parseTail(c)
	if c.Err() != nil {
		f.foot = end[len(end)-tail:]
		return c.Err()
	}
	size := int64(n + tail)
	if size+4 > f.at.Len {
		return fault.Corruptf(f.at.Sub(f.at.Len-4, 4), "footer.length", "%d bytes do not fit in a file of %d", n, f.at.Len)
	}
	if size+4 > int64(len(end)) {
		end = make([]byte, size+4)
		if err := format.ReadFull(ctx, f.src, f.at.Sub(f.at.Len-size-4, size+4), "footer", end); err != nil {
			return err
		}
	}
	f.foot = end[int64(len(end))-size:]
	c = wire.NewCursor(f.foot, f.footSpan(), "footer")
	f.footer, _ = parseFooter(c, false)
	if f.footer.Checksums() {
		f.foot = end[int64(len(end))-size-4:]
		_, fr := parseFooter(wire.NewCursor(f.foot, f.footSpan(), "footer"), true)
		if fr.crc != fr.want && !f.noVerify {
			return checksumError(f.footSpan(), "footer.checksum", fr)
		}
	}
	if err := support(&f.footer, f.footSpan()); err != nil && (c.Err() == nil || f.footer.Incompatible&^featuresKnown != 0) {
		return err
	}
	return c.Err()
}

func checksumError(at fault.Span, path string, fr frame) error {
	return fault.Corruptf(at, path, "%#08x is stored, %#08x is right", fr.crc, fr.want)
}

// readHeader parses the header. all is the whole file if it is short.
func (f *file) readHeader(ctx context.Context, all []byte, checksums bool) error {
	if int64(len(all)) < f.at.Len {
		all = make([]byte, readHead)
		if err := format.ReadFull(ctx, f.src, f.at.Sub(0, readHead), "header", all); err != nil {
			return err
		}
	}
	c := wire.NewCursor(all, f.at.Sub(0, int64(len(all))), "header")
	parseMagic(c)
	n := parseLength(c)
	if c.Err() != nil {
		f.head = all[:tail]
		return c.Err()
	}
	size := tail + n
	if checksums {
		size += 4
	}
	if int64(size+len(f.foot)) > f.at.Len {
		return fault.Corruptf(f.at.Sub(magicLen, 4), "header.length", "%d bytes do not fit in a file of %d", n, f.at.Len)
	}
	if size > len(all) {
		all = make([]byte, size)
		if err := format.ReadFull(ctx, f.src, f.at.Sub(0, int64(size)), "header", all); err != nil {
			return err
		}
	}
	f.head = all[:size]
	c = wire.NewCursor(f.head, f.headSpan(), "header")
	var fr frame
	f.header, fr = parseHeader(c, checksums)
	if c.Err() == nil && fr.crc != fr.want && !f.noVerify {
		return checksumError(f.headSpan(), "header.checksum", fr)
	}
	return c.Err()
}

// traceHeader and traceFooter tell the parts of what was read. They say also how far a broken one could be understood.
func (f *file) traceHeader(trace func(region.Node)) {
	if f.head == nil {
		return
	}
	trace(region.Node{Kind: region.Struct, Name: "header", At: f.headSpan(), Inner: -1, Value: fmt.Sprintf("CFile v%d", f.header.Version)})
	parseHeader(wire.NewCursor(f.head, f.headSpan(), "header").Trace(trace, 1), f.footer.Checksums())
}

func (f *file) traceFooter(trace func(region.Node)) {
	if f.foot == nil {
		return
	}
	trace(region.Node{Kind: region.Struct, Name: "footer", At: f.footSpan(), Inner: -1,
		Value: fmt.Sprintf("%s %s, %d values", f.footer.Type, f.footer.Encoding, f.footer.NumValues)})
	parseFooter(wire.NewCursor(f.foot, f.footSpan(), "footer").Trace(trace, 1), f.footer.Checksums())
}

// span is where a block lies in the object.
func (f *file) span(p blockPtr) fault.Span { return f.at.Sub(p.offset, p.size) }

// bad says why p cannot be a block of f; "" if it can.
func (f *file) bad(p blockPtr) string {
	least := int64(1)
	if f.footer.Checksums() {
		least = 5
	}
	end := f.at.Len - int64(len(f.foot))
	switch {
	case p.offset < int64(len(f.head)) || p.offset >= end:
		return fmt.Sprintf("offset %d is not between the header's end (%d) and the footer (%d)", p.offset, len(f.head), end)
	case p.size < least:
		return fmt.Sprintf("size %d is too small for a block", p.size)
	case p.size > end-p.offset:
		return fmt.Sprintf("offset %d and size %d: the block would reach past %d, where the footer begins", p.offset, p.size, end)
	}
	return ""
}

// fit refuses to read a block that is larger than a page may be.
func (f *file) fit(at fault.Span, path string) error {
	if at.Len > f.limits.Page {
		return fault.Limitf(at, path, "%d bytes are more than a page may have (%d)", at.Len, f.limits.Page)
	}
	return nil
}
