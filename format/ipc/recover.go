package ipc

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// recoverFile opens a file whose footer or beginning is damaged as the stream that it contains: the footer only repeats
// what precedes every message. It does the same if the footer can be parsed but lists wrong offsets. Streams, unless
// their schema claims a body, and files with an intact footer are opened as usual; lost batches are found when they are
// read.
func recoverFile(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	whole, err := open(ctx, t, o)
	if err == nil {
		err = whole.(*reader).checkFooter(ctx)
		if err == nil {
			return whole, nil, nil
		}
		whole.Close()
	}
	if !errors.Is(err, fault.Corrupt) {
		return nil, nil, err
	}
	s, serr := openSource(ctx, t, o.Limits)
	if serr != nil {
		return nil, nil, serr
	}
	s.schemaBodyless = true
	r := &reader{source: s, target: t, noFooter: true, partial: o.Opts["partial"] == "true"}
	if err := r.start(ctx); err != nil {
		s.src.Close()
		return nil, nil, err
	}
	code := "arrow.footer"
	if !r.noFooter {
		code = "arrow.open"
	}
	return r, []region.Finding{codes.Of(code, err, t.Name)}, nil
}
