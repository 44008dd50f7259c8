package text

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/typewords"
)

// jsonlOptions are the reading options of JSON lines, parsed.
type jsonlOptions struct {
	schema  *arrow.Schema // nil: infer
	texts   bool          // all fields are texts, if there is no schema
	lenient bool          // keys that are not in the schema are skipped
}

func openJSONL(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
	opts, err := jsonlReading.Parse(o.Opts)
	if err != nil {
		return nil, err
	}
	c := jsonlOptions{lenient: opts.Unknown == UnknownIgnore, texts: opts.Types == TypesString}
	if opts.Schema != "" {
		if c.schema, err = typewords.Parse(opts.Schema); err != nil {
			return nil, err
		}
	}
	return c.open(ctx, t, o)
}

func (c *jsonlOptions) open(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
	r, err := newReader(ctx, "jsonl", t, o)
	if err != nil {
		return nil, err
	}
	if err := c.begin(ctx, r); err != nil {
		r.Close()
		return nil, err
	}
	r.records = func(in *input) (records, error) {
		return &jsonlRows{in: in, opts: c, schema: r.schema, p: jsonParser{lenient: c.lenient,
			deepest: in.deepest}}, nil
	}
	return r, nil
}

// begin determines the schema.
func (c *jsonlOptions) begin(ctx context.Context, r *reader) error {
	in, err := r.input(ctx)
	if err != nil {
		return err
	}
	how := "given"
	r.schema = c.schema
	if c.schema == nil {
		top, n, err := sampleJSON(in)
		if err != nil {
			return err
		}
		fields := top.arrowFields()
		for i := range fields {
			if c.texts {
				fields[i].Type = arrow.BinaryTypes.String
			}
		}
		r.schema = arrow.NewSchema(fields, nil)
		if err := r.limits.Afford(r.schema, in.span(0, in.offset()), "schema"); err != nil {
			return err
		}
		how = fmt.Sprintf("inferred from %s", fault.Count(n, "row"))
	}
	r.meta = []format.KeyValue{{Key: "schema", Value: how}, {Key: "compressed", Value: fmt.Sprint(in.gzip)}}
	return nil
}

// shape is what is known of a field when a schema is inferred.
type shape struct {
	class  class // of scalars; strings have isString
	names  []string
	fields map[string]*shape // of objects
	item   *shape            // of arrays
}

// sampleJSON returns the shape of up to sampleRows rows, and their number. Damaged lines are skipped, and reported when
// the rows are read; if all lines are damaged, the first is an error.
func sampleJSON(in *input) (*shape, int, error) {
	top := &shape{}
	p := jsonParser{most: in.most, deepest: in.deepest}
	n := 0
	var first error // the error of the first damaged line
	for line := int64(1); n < sampleRows && in.offset() < sampleBytes; line++ {
		off := in.offset()
		b, _, err := in.line()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		p.reset(b)
		if p.peek() == 0 && p.at == len(b) {
			continue
		}
		if err := p.isObject(); err != nil {
			if e, ok := asLimitError(err); ok {
				return nil, 0, e.of(in, off, int64(len(b)), line)
			}
			if first == nil {
				hint := ""
				p.reset(b)
				if c := p.peek(); c != '{' && c != '[' {
					hint = "no line is a JSON object; if the text is of another format, the format can be forced"
				}
				first = blameJSON(in, line, off, int64(len(b)), err, hint)
			}
			continue
		}
		p.reset(b)
		err = p.look(top)
		if errors.Is(err, errWide) {
			return nil, 0, fault.Limitf(in.span(off, int64(len(b))), linePath(line, ""),
				"more than %d fields up to this line (field limit)", in.most)
		}
		if err != nil {
			return nil, 0, err
		}
		n++
	}
	if n == 0 && first != nil {
		return nil, 0, first
	}
	return top, n, nil
}

// isObject returns an error unless the text is an object.
func (p *jsonParser) isObject() error {
	c, start := p.peek(), p.at
	if _, err := p.skip(); err != nil {
		return err
	}
	if err := p.end(); err != nil {
		return err
	}
	if c != '{' {
		p.at = start
		return p.unexpected("an object")
	}
	return nil
}

// errWide means that the limit of fields is exceeded.
var errWide = errors.New("too many fields")

// look adds the next value to its shape.
func (p *jsonParser) look(s *shape) error {
	switch p.peek() {
	case '{':
		if s.fields == nil {
			s.fields = map[string]*shape{}
		}
		return p.object(func(key []byte) error {
			f := s.fields[string(key)]
			if f == nil {
				if p.fresh++; p.fresh > p.most {
					return errWide
				}
				f = &shape{}
				s.fields[string(key)] = f
				s.names = append(s.names, string(key))
			}
			return p.look(f)
		})
	case '[':
		if s.item == nil {
			s.item = &shape{}
		}
		return p.list(func() error { return p.look(s.item) })
	case '"':
		s.class |= isString
		_, err := p.text()
		return err
	}
	w, err := p.word()
	if err != nil {
		return err
	}
	if string(w) == "null" {
		s.class |= isNull
	} else {
		s.class |= classOf(w)
	}
	return nil
}

func (s *shape) arrowFields() []arrow.Field {
	out := make([]arrow.Field, len(s.names))
	for i, n := range s.names {
		out[i] = arrow.Field{Name: n, Type: s.fields[n].arrowType(), Nullable: true}
	}
	return out
}

// arrowType returns the type that holds all values seen. For values of several kinds, and for nothing but nulls and
// empty objects, it is utf8: strings, and the JSON text of other values.
func (s *shape) arrowType() arrow.DataType {
	switch scalar := s.class &^ isNull; {
	case scalar == 0 && s.fields != nil && s.item == nil && len(s.names) > 0:
		return arrow.StructOf(s.arrowFields()...)
	case scalar == 0 && s.fields == nil && s.item != nil:
		return arrow.ListOf(s.item.arrowType())
	case s.fields != nil || s.item != nil:
		return arrow.BinaryTypes.String
	}
	return s.class.infer()
}

// jsonlRows reads the rows of a text.
type jsonlRows struct {
	in     *input
	opts   *jsonlOptions
	schema *arrow.Schema
	p      jsonParser
	b      []byte // the current line
	off    int64  // its offset
	line   int64  // its number, from 1
}

func (r *jsonlRows) into(cols []array.Builder, rows *int) func() error {
	top := &node{index: map[string]int{}, seen: make([]int, len(cols)), dryRun: rows == nil}
	for i, f := range r.schema.Fields() {
		top.names = append(top.names, f.Name)
		top.index[f.Name] = i
		var sub *node
		if cols[i] != nil {
			sub = newNode(cols[i], f.Type)
			sub.nullable = f.Nullable
			if rows != nil && sub.set != nil && sub.width == 1 {
				sub.before = rows
			}
			if rows != nil {
				top.busy = append(top.busy, i)
			}
		}
		top.fields = append(top.fields, sub)
	}
	return func() error { return r.row(top) }
}

func (r *jsonlRows) weight() int64 { return r.in.offset() + r.p.filled*bytesOfMissing }

// next moves to the next line that is not blank.
func (r *jsonlRows) next() error {
	for {
		r.off = r.in.offset()
		b, _, err := r.in.line()
		if err != nil {
			return err
		}
		r.line++
		r.p.reset(b)
		if r.p.peek() != 0 || r.p.at < len(b) {
			r.b = b
			return nil
		}
	}
}

func (r *jsonlRows) row(top *node) error {
	r.p.reset(r.b)
	r.p.room = r.in.limit / bytesOfMissing
	err := r.object(top)
	if err == nil {
		return nil
	}
	if e, ok := asLimitError(err); ok {
		return e.of(r.in, r.off, int64(len(r.b)), r.line)
	}
	hint := ""
	if e := (*valueError)(nil); r.opts.schema == nil && errors.As(err, &e) {
		hint = "the type was inferred from the first rows; give a schema"
	}
	return blameJSON(r.in, r.line, r.off, int64(len(r.b)), err, hint)
}

func (r *jsonlRows) object(top *node) error {
	if r.p.peek() != '{' {
		return r.p.unexpected("an object")
	}
	if err := r.p.members(top); err != nil {
		return err
	}
	return r.p.end()
}

// blameJSON adds the location to an error in a line of size bytes at offset off, and a hint.
func blameJSON(in *input, line, off, size int64, err error, hint string) error {
	at := in.span(off, size)
	var j *jsonError
	if errors.As(err, &j) && !in.gzip {
		at = at.Sub(int64(j.at), 1)
	}
	column := ""
	for e := err; ; {
		var f *fieldError
		if !errors.As(e, &f) {
			break
		}
		if column != "" {
			column += "."
		}
		column += f.name
		e = f.err
	}
	return &fault.Error{Class: fault.Corrupt, At: at, Path: linePath(line, column), Reason: hint,
		Cause: &rowError{err: err}}
}
