package ipc

import (
	"context"
	"encoding/binary"
	"errors"

	"stoa/fault"
	"stoa/format"
)

func open(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
	r, err := openReader(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func openReader(ctx context.Context, t format.Target, o format.OpenOptions) (*reader, error) {
	opts, err := reading.Parse(o.Opts)
	if err != nil {
		return nil, err
	}
	s, err := openSource(ctx, t, o.Limits)
	if err != nil {
		return nil, err
	}
	r := &reader{source: s, target: t, partial: opts.Partial}
	if err := r.start(ctx); err != nil {
		s.src.Close()
		return nil, err
	}
	return r, nil
}

// start determines whether the source is a file or a stream, and reads the schema and the footer.
func (r *reader) start(ctx context.Context) error {
	var magic [8]byte
	n, err := r.fill(ctx, magic[:], r.base)
	if err != nil && err != errEnd {
		return err
	}
	switch {
	case n == len(magic) && (string(magic[:len(fileMagic)]) == fileMagic || r.noFooter && r.endsAsFile(ctx)):
		if !r.noFooter {
			return r.startFile(ctx)
		}
		// The footer only repeats what precedes every message.
		r.first, r.after, err = r.leadingSchema(ctx)
	case n < 8 || !streamStart(magic[:]):
		return fault.Corruptf(r.span(r.base, int64(n)), "magic",
			"neither an Arrow file nor a stream begins with %x", magic[:n])
	default:
		r.noFooter = false // a stream has no footer to lose
		r.first, r.after, err = r.schemaAt(ctx, r.base)
	}
	if err == nil {
		r.schema, err = schemaOf(r.first)
	}
	return err
}

// endsAsFile reports whether the end is that of a file, whatever the beginning is.
func (r *reader) endsAsFile(ctx context.Context) bool {
	_, _, err := r.footerAt(ctx)
	return err == nil
}

// streamStart reports whether a stream may begin with these bytes.
func streamStart(b []byte) bool {
	n := int32(binary.LittleEndian.Uint32(b))
	if n == -1 {
		n = int32(binary.LittleEndian.Uint32(b[4:]))
		return n >= 8
	}
	return n >= 64 && n < 1<<24 && n%4 == 0 // before 0.15: the length of a schema's metadata
}

// startFile reads a file's schema from its footer, and compares the schema at the beginning with it.
func (r *reader) startFile(ctx context.Context) (err error) {
	foot, raw, at, err := r.readFooter(ctx)
	if err != nil {
		return err
	}
	r.file, r.foot, r.footerBlocks = true, foot, byPlace(foot)
	defer func() {
		if err == nil {
			err = r.checkUnnamed(ctx, at.Off)
		}
	}()
	version := foot.Version
	lead, after, leadErr := r.leadingSchema(ctx)
	switch {
	case leadErr == nil:
		version, r.after = lead.Version, after
	case isContentError(leadErr):
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
		return fault.Corruptf(at, "footer.schema", "the schema at the beginning differs, and can be read: %v", err)
	}
	if err != nil {
		return err
	}
	switch {
	case otherErr != nil:
		r.unused = otherErr
	case !other.Equal(r.schema) || lead.Endian != r.first.Endian: // schemas get this machine's byte order
		return fault.Corruptf(lead.at, "schema", "it is not that of the footer: one of the two is damaged")
	}
	return nil
}
