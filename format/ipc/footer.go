package ipc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"stoa/fault"
	"stoa/format/ipc/flat"
	"stoa/internal/sorted"
)

// tail is the number of bytes after the footer: its length and the magic.
const tail = 4 + int64(len(fileMagic))

// readFooter reads the footer, and also returns its bytes.
func (s *source) readFooter(ctx context.Context) (f flat.Footer, raw []byte, at fault.Span, err error) {
	off, n, err := s.footerAt(ctx)
	if err != nil {
		return f, nil, at, err
	}
	raw, at = make([]byte, n), s.span(off, n)
	if err := s.readFull(ctx, raw, off, "footer"); err != nil {
		return f, nil, at, err
	}
	f, err = flat.ParseFooter(raw, off-s.base)
	if err == nil {
		err = s.checkSchemaSize(f.Schema, int64(len(raw)), at, "footer")
	}
	return f, raw, at, fault.Locate(err, at, true, "footer")
}

// footerAt finds the footer from the end of the file.
func (s *source) footerAt(ctx context.Context) (at, n int64, err error) {
	size := s.size()
	if size < 8+tail {
		return 0, 0, fault.Corruptf(s.span(s.base, size), "footer", "the file is too short for a footer")
	}
	var b [tail]byte
	end := s.base + size - tail
	if err := s.readFull(ctx, b[:], end, "footer"); err != nil {
		return 0, 0, err
	}
	if !bytes.Equal(b[4:], []byte(fileMagic)) {
		return 0, 0, fault.Corruptf(s.span(end+4, tail-4), "footer.magic",
			"%q instead of %q: the file is cut or was never finished", b[4:], fileMagic)
	}
	n = int64(int32(binary.LittleEndian.Uint32(b[:])))
	if n <= 8 || n > size-8-tail {
		return 0, 0, fault.Corruptf(s.span(end, 4), "footer.length", "%d bytes in a file of %d", n, size)
	}
	if n > s.limits.Metadata {
		return 0, 0, fault.Limitf(s.span(end, 4), "footer.length", "%d bytes, and at most %d are read "+
			"(metadata limit)", n, s.limits.Metadata)
	}
	return end - n, n, nil
}

// byPlace returns the messages listed in a footer, in the order of the file.
func byPlace(f flat.Footer) []flat.Block {
	out := slices.Concat(f.Dictionaries, f.Batches)
	sorted.By(out, func(a, b flat.Block) int { return cmp.Compare(a.Off, b.Off) })
	return out
}

// ofFooter makes a schema message from the bytes of a footer.
func ofFooter(raw []byte, at fault.Span, version int) (*message, error) {
	meta, err := flat.MessageOfFooter(raw, version)
	if err != nil {
		return nil, fault.Locate(err, at, true, "footer")
	}
	m := &message{at: at, meta: meta}
	m.Header, err = flat.ParseHeader(meta)
	return m, fault.Locate(err, at, false, "footer")
}
