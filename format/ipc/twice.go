package ipc

import (
	"context"
	"encoding/binary"
	"errors"

	"stoa/fault"
	"stoa/format/ipc/flat"
)

// A file says its schema twice: in its footer, by which it is read, and in front of its messages, where a
// reader without the footer finds it. Of the second, writers think little: arrow2's (and so Polars') leaves out
// its length, and puts the dictionaries behind the batches, where only a footer finds them in time.

// startFile reads a file's schema, which is that of its footer, and holds that at the beginning against it.
func (r *reader) startFile(ctx context.Context) (err error) {
	foot, raw, at, err := r.readFooter(ctx)
	if err != nil {
		return err
	}
	r.file, r.foot, r.named = true, foot, byPlace(foot)
	defer func() {
		if err == nil {
			err = r.unnamed(ctx, at.Off)
		}
	}()
	version := foot.Version
	lead, after, leadErr := r.leading(ctx)
	switch {
	case leadErr == nil:
		version, r.after = lead.Version, after
	case ofBytes(leadErr):
		r.after = r.base + foot.First(at.Off-r.base)
	default:
		return leadErr
	}
	if r.first, err = ofFooter(raw, at, version); err != nil {
		return err
	}
	r.schema, err = schemaOf(r.first)
	if lead == nil {
		return err
	}
	other, otherErr := schemaOf(lead)
	if err != nil && otherErr == nil && errors.Is(err, fault.Unsupported) {
		return fault.Corruptf(at, "footer.schema", "the schema at the beginning is another, and can be read: %v", err)
	}
	if err != nil {
		return err
	}
	switch {
	case otherErr != nil:
		r.unused = otherErr
	case !other.Equal(r.schema) || lead.Endian != r.first.Endian: // the library's schemas are of this machine's order
		return fault.Corruptf(lead.at, "schema", "it is not that of the footer, and nobody can say which of the two "+
			"is damaged")
	}
	return nil
}

// ofBytes reports whether an error is about bytes that were read, and not about reading them.
func ofBytes(err error) bool {
	return errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Limit) || errors.Is(err, fault.Unsupported)
}

// ofFooter makes a schema message of the bytes of a footer.
func ofFooter(raw []byte, at fault.Span, version int) (*message, error) {
	meta, err := flat.MessageOfFooter(raw, version)
	if err != nil {
		return nil, fault.Locate(err, at, true, "footer")
	}
	m := &message{at: at, meta: meta}
	m.Header, err = flat.ParseHeader(meta)
	return m, fault.Locate(err, at, false, "footer")
}

// leading reads the schema at the beginning of a file, and says where the messages behind it begin.
func (s *source) leading(ctx context.Context) (*message, int64, error) {
	at := s.base + 8
	m, end, err := s.schemaAt(ctx, at)
	if err == nil || !ofBytes(err) {
		return m, end, err
	}
	bare, end, bareErr := s.bareSchema(ctx, at)
	if bare != nil || bareErr != nil {
		return bare, end, bareErr
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

// bareSchema reads a schema message that has no prefix: its metadata end where the next message begins. It is
// nil if there is none at off.
func (s *source) bareSchema(ctx context.Context, off int64) (m *message, end int64, err error) {
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
			if !s.begins(buf[i:]) {
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

// begins reports whether b looks like the prefix of a message, or the end mark.
func (s *source) begins(b []byte) bool {
	size := int64(int32(binary.LittleEndian.Uint32(b[4:])))
	return string(b[:4]) == mark && size >= 0 && size%8 == 0 && size <= s.limits.Metadata
}

// ahead loads the dictionaries of a file that has lost its footer if they stand behind its batches. A file has
// no two for one column, so the order does not matter.
func (w *walk) ahead() error {
	if !w.r.lost || !w.r.dictionaried() {
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
		case err != nil && !ofBytes(err):
			return err
		case err != nil || m == nil: // which batches that costs shows when they are read
			return nil
		case m.Kind == flat.Dictionary:
			w.keep(m)
			w.early = true
		}
		off = end
	}
}
