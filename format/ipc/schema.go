package ipc

import (
	"context"
	"encoding/binary"

	"stoa/fault"
	"stoa/format/ipc/flat"
)

// A file stores its schema twice: in its footer, which is used for reading, and before its messages, where a reader
// without the footer finds it. Some writers neglect the second: arrow2 (and thus Polars) omits its length, and puts
// dictionaries after the batches, where only the footer locates them in time.

// leadingSchema reads the schema message at the beginning of a file, and returns the offset after it.
func (s *source) leadingSchema(ctx context.Context) (*message, int64, error) {
	at := s.base + 8
	m, end, err := s.schemaAt(ctx, at)
	if err == nil || !isContentError(err) {
		return m, end, err
	}
	noPrefix, end, noPrefixErr := s.schemaWithoutPrefix(ctx, at)
	if noPrefix != nil || noPrefixErr != nil {
		return noPrefix, end, noPrefixErr
	}
	return nil, at, err
}

// schemaAt reads a message that must be a schema.
func (s *source) schemaAt(ctx context.Context, at int64) (*message, int64, error) {
	m, end, err := s.next(ctx, at, 0)
	if err == nil && (m == nil || m.Kind != flat.Schema) {
		m, err = nil, fault.Corruptf(s.span(at, 8), "schema", "the first message is not a schema")
	}
	return m, end, err
}

// schemaWithoutPrefix reads a schema message without a prefix, whose metadata ends where the next message begins. It
// returns nil if there is none at off.
func (s *source) schemaWithoutPrefix(ctx context.Context, off int64) (m *message, end int64, err error) {
	var buf []byte
	for have, size := 0, int64(4<<10); ; have, size = len(buf)&^7, 2*size {
		size = min(size, s.limits.Metadata)
		if int64(have) >= size {
			return nil, off, nil
		}
		buf = append(make([]byte, 0, size), buf[:have]...)[:size]
		n, err := s.fill(ctx, buf[have:], off+int64(have))
		if err != nil && err != errEnd {
			return nil, off, err
		}
		buf = buf[:have+n]
		for i := have; i+8 <= len(buf); i += 8 {
			if !s.isPrefix(buf[i:]) {
				continue
			}
			m := &message{at: s.span(off, int64(i)), meta: buf[:i:i], off: off, data: off + int64(i)}
			if m.Header, err = flat.ParseHeader(m.meta); err != nil || m.Kind != flat.Schema || m.Body != 0 {
				m = nil
			}
			return m, off + int64(i), nil
		}
		if err == errEnd {
			return nil, off, nil
		}
	}
}

// isPrefix reports whether b looks like the prefix of a message, or the end mark.
func (s *source) isPrefix(b []byte) bool {
	size := int64(int32(binary.LittleEndian.Uint32(b[4:])))
	return string(b[:4]) == mark && size >= 0 && size%8 == 0 && size <= s.limits.Metadata
}

// mark is the first word of a message's prefix since Arrow 0.15.
const mark = "\xFF\xFF\xFF\xFF"
