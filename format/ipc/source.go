package ipc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc/flat"
	"stoa/internal/budget"
	"stoa/store"
)

const fileMagic = "ARROW1"

// source is the bytes of a file or stream. The size of standard input is known only after reading it, so it is
// requested only for files.
type source struct {
	src    store.Source
	name   string
	base   int64 // offset of the file or stream in the object
	end    int64 // its end; -1: not requested yet
	limits format.Limits
	// recovery: a schema that claims a body has none, and the batches follow its metadata
	schemaBodyless bool
}

func openSource(ctx context.Context, t format.Target, limits format.Limits) (*source, error) {
	src, err := t.Tree.Open(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	s := &source{src: src, name: t.Name, end: -1, limits: limits.WithDefaults()}
	if t.At.Len() > 0 {
		s.base, s.end = t.At.From, t.At.To
	}
	return s, nil
}

// size requests the end of the bytes, once.
func (s *source) size() int64 {
	if s.end < 0 {
		s.end = s.src.Size()
	}
	return s.end - s.base
}

func (s *source) span(off, n int64) fault.Span { return fault.Span{Object: s.name, Off: off, Len: n} }

// errEnd means that the source ends before the requested bytes.
var errEnd = errors.New("the bytes end")

// bodyBytes is the size from which a read is assumed to be a message body, which is not cached.
const bodyBytes = 64 << 10

// fill reads len(p) bytes at off. At the end of the source it returns errEnd and the number of available bytes.
func (s *source) fill(ctx context.Context, p []byte, off int64) (int, error) {
	left := p // the part of p that the source has
	if s.end >= 0 && off+int64(len(p)) > s.end {
		left = p[:max(0, s.end-off)]
	}
	src := s.src
	if len(left) >= bodyBytes {
		src = store.Uncached(src) // the body of a message
	}
	n, err := src.ReadAt(ctx, left, off)
	switch {
	case n == len(p):
		return n, nil
	case n == len(left) || err == io.EOF || err == io.ErrUnexpectedEOF:
		return n, errEnd
	}
	return n, err
}

// readFull is fill for bytes that a structure declares: if they are missing, the error is of class Corrupt.
func (s *source) readFull(ctx context.Context, p []byte, off int64, path string) error {
	n, err := s.fill(ctx, p, off)
	if err == errEnd {
		return fault.Corruptf(s.span(off, int64(len(p))), path, "only %d of the %d bytes are there", n, len(p))
	}
	return err
}

// exists returns an error of class Corrupt if the source does not have n bytes at off. It is called before memory is
// allocated for them.
func (s *source) exists(ctx context.Context, off, n int64, path string) error {
	const free = 64 << 10
	if n <= free {
		return nil
	}
	if off+n < off {
		return fault.Corruptf(s.span(off, n), path, "%d bytes cannot be", n)
	}
	var last [1]byte
	if _, err := s.fill(ctx, last[:], off+n-1); err == errEnd {
		return fault.Corruptf(s.span(off, n), path, "the file ends within these %d bytes", n)
	} else {
		return err
	}
}

// message is a message whose metadata was read and checked.
type message struct {
	flat.Header
	at   fault.Span // the whole message
	meta []byte     // the flatbuffer
	off  int64      // of meta
	data int64      // where the body begins
	body *memory.Buffer
}

// next reads the metadata of the message at off, and returns the offset after its body. m is nil at the end of the
// stream; end is then the offset after the end mark. declared is the size of prefix and metadata according to the
// footer, or 0.
func (s *source) next(ctx context.Context, off int64, declared int32) (m *message, end int64, err error) {
	var prefix [8]byte
	n, err := s.fill(ctx, prefix[:], off)
	if err == errEnd && n == 0 {
		return nil, off, nil // the end mark is optional
	}
	if err != nil && !(err == errEnd && n == 4 && binary.LittleEndian.Uint32(prefix[:]) == 0) {
		if err == errEnd {
			err = fault.Corruptf(s.span(off, int64(n)), "message", "%d bytes, too short for a message", n)
		}
		return nil, off, err
	}
	size, skip := int64(int32(binary.LittleEndian.Uint32(prefix[:]))), int64(4)
	if uint32(size) == 0xFFFFFFFF {
		size, skip = int64(int32(binary.LittleEndian.Uint32(prefix[4:]))), 8
	}
	if size == 0 {
		return nil, off + skip, nil
	}
	if size < 8 {
		return nil, off, fault.Corruptf(s.span(off, 8), "message.length", "%d bytes of metadata", size)
	}
	if err := s.exists(ctx, off+skip, size, "message"); err != nil { // before the limit: a truncated file is damage
		return nil, off, err
	}
	if size > s.limits.Metadata {
		return nil, off, fault.Limitf(s.span(off, 8), "message.length", "%d bytes of metadata, and at most %d are "+
			"read (metadata limit)",
			size, s.limits.Metadata)
	}
	if declared != 0 && skip+size != int64(declared) {
		return nil, off, fault.Corruptf(s.span(off, 8), "message.length",
			"expected %d bytes with the prefix, by the footer, found %d", declared, skip+size)
	}
	m = &message{off: off + skip, data: off + skip + size}
	m.meta = make([]byte, size)
	if err := s.readFull(ctx, m.meta, m.off, "message"); err != nil {
		return nil, off, err
	}
	m.Header, err = flat.ParseHeader(m.meta)
	if err != nil {
		return nil, off, fault.Locate(err, s.span(m.off, size), true, "message")
	}
	if m.Kind == flat.Schema {
		if m.Body != 0 && !s.schemaBodyless { // batches would be taken for its body, and not be missed
			return nil, off, fault.Corruptf(s.span(m.off, size), "message.bodyLength",
				"%d bytes, and a schema has none",
				m.Body)
		}
		m.Body = 0
		if err := s.checkSchemaSize(m.Schema, size, s.span(m.off, size), "message"); err != nil {
			return nil, off, err
		}
	}
	if m.data+m.Body < m.data {
		return nil, off, fault.Corruptf(s.span(m.off, size), "message.bodyLength", "%d bytes cannot be", m.Body)
	}
	m.at = s.span(off, m.data+m.Body-off)
	return m, m.at.End(), nil
}

// checkSchemaSize returns an error of class Limit if a schema, of size bytes of metadata, exceeds the limits.
func (s *source) checkSchemaSize(e flat.Extent, size int64, at fault.Span, path string) error {
	if err := s.limits.FitSize(e.Fields, e.Depth, at, path+".schema"); err != nil {
		return err
	}
	return s.limits.Memory().Take(size+e.Memory, at, path)
}

// keep is load for a body that stays in memory; it charges the stored and decompressed size to kept.
func (s *source) keep(ctx context.Context, m *message, kept *budget.Memory) error {
	if err := kept.Take(m.at.Len, m.at, "body"); err != nil {
		return err
	}
	if err := s.load(ctx, m, memory.NewGoAllocator()); err != nil {
		return err
	}
	return kept.Take(m.Batch.Size, m.at, "body")
}

// load reads the body of m into memory of mem.
func (s *source) load(ctx context.Context, m *message, mem memory.Allocator) error {
	if err := s.exists(ctx, m.data, m.Body, "body"); err != nil {
		return err
	}
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(int(m.Body))
	if err := s.readFull(ctx, buf.Bytes(), m.data, "body"); err != nil {
		buf.Release()
		return err
	}
	if err := m.Batch.CheckSizes(buf.Bytes(), s.span(m.data, m.Body), s.limits.Page); err != nil {
		buf.Release()
		return err
	}
	m.body = buf
	return nil
}

// isContentError reports whether an error is about the contents of the bytes, and not about reading them.
func isContentError(err error) bool {
	return errors.Is(err, fault.Corrupt) || fault.OverBudget(err) || errors.Is(err, fault.Unsupported)
}
