package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc/flat"
	"stoa/internal/settle"
	"stoa/region"
	"stoa/vec"
)

// reader is an open file or stream.
type reader struct {
	*source
	target format.Target
	schema *arrow.Schema
	first  *message // the schema message; in a file, one made from its footer
	after  int64    // offset after the schema at the beginning

	file         bool
	foot         flat.Footer  // of a file
	footerBlocks []flat.Block // messages listed in the footer, in the order of the file
	unused       error        // of a file: why the apparent schema at the beginning is not used
	partial      bool         // a stream may lack its end mark
	// recovery: the footer or the magic at the beginning is lost; the file is read as the stream that it contains
	noFooter bool

	mu    sync.Mutex
	rows  []int64    // of a file's batches; nil before RowGroups
	dicts []*message // of a file; nil before the first batch
	cut   int64      // offset at which a stream ended without its end mark; 0: it did not
	rest  fault.Span // bytes after a stream's end mark
}

// Findings reports, after a stream was read to its end, a missing end mark, or bytes after it.
func (r *reader) Findings() (out []region.Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut > 0 && !r.partial {
		out = append(out, r.noEnd(r.cut))
	}
	if r.rest.Len > 0 {
		out = append(out, afterEnd(r.rest))
	}
	return out
}

// afterEnd returns the finding about bytes after the end mark of a stream.
func afterEnd(at fault.Span) region.Finding {
	return codes.Finding("arrow.stream.rest", at, at.Object, fmt.Sprintf("%d bytes are after the end mark, and are "+
		"not read: zeros in the place of a message may have been taken for the mark, or another stream follows",
		at.Len))
}

// noEnd returns the finding that a stream ends at off without its end mark.
func (r *reader) noEnd(off int64) region.Finding {
	return codes.Finding("arrow.stream.end", r.span(off, 0), r.name, "the stream has no end mark: it may have been "+
		"cut between two batches; partial=true says that its writer leaves the mark out")
}

func (r *reader) Schema() *arrow.Schema { return r.schema }

func (r *reader) Order() []format.Key { return nil }

func (r *reader) Close() error { return r.src.Close() }

// Columns returns the top-level fields: a batch is read whole.
func (r *reader) Columns() []format.Column {
	out := make([]format.Column, r.schema.NumFields())
	for i, f := range r.schema.Fields() {
		out[i] = format.Column{Name: f.Name, Path: []int{i}, Parent: -1, Has: format.Values, Type: f.Type}
	}
	return out
}

func (r *reader) Parts(ctx context.Context, _ format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		p := format.Part{Ref: r.name, Rows: -1, Bytes: -1}
		if info, err := r.target.Tree.Stat(ctx, r.name); err == nil {
			p.Stamp, p.Bytes = info.Stamp, info.Size
		}
		yield(p, nil)
	}
}

func (r *reader) RowGroups(ctx context.Context, p format.Part, _ format.Query) ([]format.RowGroup, error) {
	if !r.file {
		return []format.RowGroup{{Part: p.Ref, Rows: -1, Bytes: -1}}, nil
	}
	rows, err := r.batchRows(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]format.RowGroup, len(rows))
	for i, n := range rows {
		b := r.foot.Batches[i]
		out[i] = format.RowGroup{Part: p.Ref, Index: i, Rows: n, Bytes: b.Body + int64(b.Meta)}
	}
	return out, nil
}

// batchRows reads the metadata of every batch of a file, once. A batch with damaged metadata has -1 rows.
func (r *reader) batchRows(ctx context.Context) ([]int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows != nil {
		return r.rows, nil
	}
	rows := make([]int64, len(r.foot.Batches))
	for i := range rows {
		m, err := r.block(ctx, i)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return nil, err
		}
		rows[i] = -1
		if err == nil {
			rows[i] = m.Batch.Rows
		}
	}
	r.rows = rows
	return rows, nil
}

// block returns the message of batch i of a file, after comparing it with the schema: it may have no rows, and so never
// be read again.
func (r *reader) block(ctx context.Context, i int) (*message, error) {
	m, err := r.message(ctx, r.foot.Batches[i], flat.RecordBatch, fmt.Sprintf("recordBatches[%d]", i))
	if err != nil {
		return nil, err
	}
	return m, r.checkBatch(m)
}

// checkBatch compares a record batch with the schema.
func (r *reader) checkBatch(m *message) error { return checkBatch(r.schema, m, r.limits.Page) }

// message reads the metadata of a message listed in the footer, which must be of that kind.
func (r *reader) message(ctx context.Context, b flat.Block, kind int, path string) (*message, error) {
	m, _, err := r.next(ctx, r.base+b.Off, b.Meta)
	if errors.Is(err, fault.Unsupported) { // the schema's message was supported
		err = &fault.Error{Class: fault.Corrupt, At: r.span(r.base+b.Off, int64(b.Meta)), Path: path, Cause: err}
	}
	var placed *fault.Error
	if errors.As(err, &placed) {
		return nil, fault.Locate(err, r.span(r.base+b.Off, int64(b.Meta)), true, path)
	}
	if err != nil {
		return nil, err // bytes that could not be read are not damage
	}
	switch {
	case m == nil:
		return nil, fault.Corruptf(r.span(r.base+b.Off, int64(b.Meta)), path, "there is no message here")
	case m.Kind != kind:
		return nil, fault.Corruptf(m.at, path, "is a %s, not a %s", flat.KindName(m.Kind), flat.KindName(kind))
	case m.Body != b.Body:
		return nil, fault.Corruptf(m.at, path, "expected a body of %d bytes by the footer, found %d", b.Body, m.Body)
	}
	return m, nil
}

// dictionaries loads all dictionaries of a file, once.
func (r *reader) dictionaries(ctx context.Context) ([]*message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dicts != nil || len(r.foot.Dictionaries) == 0 {
		return r.dicts, nil
	}
	var out []*message
	kept := r.limits.Memory() // several entries may refer to the same bytes
	first := map[int64]fault.Span{}
	for i, b := range r.foot.Dictionaries {
		path := fmt.Sprintf("dictionaries[%d]", i)
		m, err := r.message(ctx, b, flat.Dictionary, path)
		if err == nil {
			if one, again := first[m.ID]; again && !m.Delta {
				return nil, fault.Corruptf(m.at, path, "replaces dictionary %d, at %d: a file can only extend "+
					"a dictionary", m.ID, one.Off)
			}
			first[m.ID] = m.at
			err = r.keep(ctx, m, kept)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	r.dicts = out
	return out, nil
}

// Chunk returns an error of class Unsupported: the reader is a format.Batcher.
func (r *reader) Chunk(context.Context, format.RowGroup, int, vec.Range) (format.Chunk, error) {
	return nil, fault.Unsupportedf(fault.Span{Object: r.name}, "", "Arrow batches are read whole, not by column chunk")
}

// hasDictionaries reports whether the schema has dictionary types.
func (r *reader) hasDictionaries() bool {
	return slices.ContainsFunc(r.schema.Fields(), func(f arrow.Field) bool { return settle.HasDictionaries(f.Type) })
}

// Meta returns facts about the file or stream, followed by the metadata of its schema.
func (r *reader) Meta() []format.KeyValue {
	kind := "stream"
	if r.file {
		kind = "file"
	}
	out := []format.KeyValue{{Key: "kind", Value: kind},
		{Key: "metadata version", Value: fmt.Sprintf("V%d", r.first.Version+1)}}
	if r.file {
		out = append(out,
			format.KeyValue{Key: "record batches", Value: strconv.Itoa(len(r.foot.Batches))},
			format.KeyValue{Key: "dictionary batches", Value: strconv.Itoa(len(r.foot.Dictionaries))})
		if len(r.foot.Batches) > 0 {
			if m, err := r.block(context.Background(), 0); err == nil {
				out = append(out, format.KeyValue{Key: "compression", Value: flat.CodecNames[m.Batch.Codec]})
			}
		}
	}
	meta := r.schema.Metadata()
	for i, k := range meta.Keys() {
		out = append(out, format.KeyValue{Key: "schema metadata: " + k, Value: meta.Values()[i]})
	}
	return out
}
