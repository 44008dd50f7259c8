package ipc

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/ipc/flat"
)

// Format is format "arrow": Arrow IPC files and streams.
var Format = format.Format{
	Name:       "arrow",
	Title:      "Apache Arrow IPC file or stream",
	Extensions: []string{".arrow", ".arrows", ".feather", ".ipc"},
	Probe:      probe,
	List:       list,
	Open:       open,
	Create:     create,
	Describe:   anatomy,
	Verify:     verify,
	Recover:    recoverFile,
	UTF8:       true,
	Dictionaries: func(values arrow.DataType) bool { // the library does not write other types
		return values.ID() != arrow.NULL && values.ID() != arrow.DICTIONARY
	},
	Unchecked: func(context.Context, format.Target, format.OpenOptions) (string, error) {
		return "Arrow IPC has no checksums", nil
	},
	ReadKeys:  reading.Keys(),
	WriteKeys: writing.Keys(),
	Codes:     codes,
}

// probe checks the magic, or the first message. It never asks for the size, which standard input does not have.
func probe(ctx context.Context, t format.Target) (format.Match, error) {
	s, err := openSource(ctx, t, t.Limits)
	if err != nil {
		return format.No, err
	}
	defer s.src.Close()
	var b [8]byte
	if n, err := s.fill(ctx, b[:], s.base); err != nil || n < 8 {
		if err == errEnd {
			err = nil
		}
		return format.No, err
	}
	if string(b[:6]) == fileMagic {
		return format.Certain, nil
	}
	if !streamStart(b[:]) {
		return format.No, nil
	}
	if m, _, err := s.next(ctx, s.base, 0); err != nil || m == nil || m.Kind != flat.Schema {
		if b[0] == 0xFF && b[1] == 0xFF && b[2] == 0xFF && b[3] == 0xFF {
			return format.Maybe, nil
		}
		return format.No, nil
	}
	return format.Certain, nil
}

func list(ctx context.Context, t format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		r, err := openReader(ctx, t, format.OpenOptions{Limits: t.Limits})
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		defer r.Close()
		e := format.Entry{Kind: "Arrow stream", Rows: -1, Bytes: -1, Meta: r.Meta()}
		if r.file {
			e.Kind, e.Bytes = "Arrow file", r.size()
			e.Rows = r.total(ctx)
		} else if info, err := t.Tree.Stat(ctx, t.Name); err == nil {
			e.Bytes = info.Size
		}
		yield(e, nil)
	}
}

// total returns the number of rows of a file, -1 if that of a batch is unknown.
func (r *reader) total(ctx context.Context) int64 {
	rows, err := r.batchRows(ctx)
	if err != nil {
		return -1
	}
	var sum int64
	for _, n := range rows {
		if n < 0 {
			return -1
		}
		sum += n
	}
	return sum
}
