package ipc

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// recoverFile opens a file whose footer is damaged or gone as the stream that it begins with: a footer only
// repeats what stands in front of every message. So is one whose footer is whole but for places that are wrong,
// and one whose beginning is overwritten, which its end says is a file. Streams, but for a body that their schema
// claims, and files with a footer are read as they are; which batches are lost shows when they are read.
func recoverFile(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	whole, err := open(ctx, t, o)
	if err == nil {
		err = whole.(*reader).misled(ctx)
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
	s.bodiless = true
	r := &reader{source: s, target: t, lost: true, partial: o.Opts["partial"] == "true"}
	if err := r.start(ctx); err != nil {
		s.src.Close()
		return nil, nil, err
	}
	code := "arrow.footer"
	if !r.lost {
		code = "arrow.open"
	}
	return r, []region.Finding{codes.Of(code, err, t.Name)}, nil
}
