package cfile

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// The functions below are for formats that keep CFiles inside their own files (package kudu). A CFile is then part of
// an object, and the places in errors and the spans of pages refer to that object.

// OpenAt opens the column file that is the part at of src.
func OpenAt(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (*Reader, error) {
	f, err := columnfile.OpenFile(ctx, src, at, o)
	if err != nil {
		return nil, err
	}
	return &Reader{f: f, field: f.Field(columnfile.ReadOptions{Scale: -1, Typ: -1})}, nil
}

// At is the span of the file.
func (r *Reader) At() fault.Span { return r.f.At }

// FooterAt is the span of the file's footer, the place of findings about wrong counts, types and metadata.
func (r *Reader) FooterAt() fault.Span { return r.f.FootSpan() }

// Chunk returns the file's pages, from the one that holds rows.From on. Its vectors have the file's Arrow type;
// decimals may have any precision and scale.
func (r *Reader) Chunk(ctx context.Context, rows vec.Range) (format.Chunk, error) {
	c, err := r.f.NewChunk(ctx, rows)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Find returns the ordinal of the first value whose encoded key (see AppendKey) is at least key, or greater than key if
// after is true; Len if there is none. exact reports whether that value equals key. The file must have a value index.
func (r *Reader) Find(ctx context.Context, key []byte, after bool) (n int64, exact bool, err error) {
	if !r.f.Sorted() {
		return 0, false, fault.Unsupportedf(r.f.FootSpan(), "footer.validx_info",
			"the file has no value index, or its values are not keys")
	}
	l := columnfile.Lookup{F: r.f}
	defer l.Close()
	return l.Bound(ctx, key, after)
}

// Stored encodes a literal as in a block of a column of type t with the Arrow type at: little-endian, or the bytes of a
// string. It returns false if t cannot hold the value.
func Stored(t block.Type, at arrow.DataType, v pred.Value) ([]byte, bool) {
	if t.IsBinary() {
		return []byte(v.Text), v.Kind == pred.KindString || v.Kind == pred.KindBytes
	}
	if t == block.Bool || t == block.Float || t == block.Double {
		return nil, false
	}
	key, ok := block.KeyOf(t, at, v)
	if !ok {
		return nil, false
	}
	return block.FixedKey(key, t), true
}

// Literal is the inverse of Stored: it decodes a stored value of a key's type to a literal.
func Literal(t block.Type, at arrow.DataType, stored []byte) (pred.Value, bool) {
	if !block.Keyable(t) || !t.IsBinary() && len(stored) != t.Width() {
		return pred.Value{}, false
	}
	return block.ValueOf(t, at, stored)
}
