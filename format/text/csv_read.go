package text

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/typewords"
)

// csvOptions are the reading options of CSV and TSV, parsed.
type csvOptions struct {
	comma  byte
	header bool
	null   string
	infer  bool
	schema *arrow.Schema // nil: infer
	placed bool          // columns are identified by position, whatever the names in the header
}

func parseCSVOptions(name string, comma byte, opts map[string]string) (c csvOptions, err error) {
	o, err := named(csvReading, name).Parse(opts)
	if err != nil {
		return c, err
	}
	c = csvOptions{comma: cmp.Or(o.Delimiter, comma), header: !o.NoHeader, null: o.Null, infer: o.Types != TypesString}
	if o.Schema != "" {
		c.schema, err = typewords.Parse(o.Schema)
	}
	return c, err
}

func openCSV(ctx context.Context, t format.Target, o format.OpenOptions, name string, comma byte) (format.Reader,
	error) {
	c, err := parseCSVOptions(name, comma, o.Opts)
	if err != nil {
		return nil, err
	}
	return c.open(ctx, t, o, name)
}

func (c *csvOptions) open(ctx context.Context, t format.Target, o format.OpenOptions, name string) (format.Reader,
	error) {
	r, err := newReader(ctx, name, t, o)
	if err != nil {
		return nil, err
	}
	if err := c.begin(ctx, r); err != nil {
		r.Close()
		return nil, err
	}
	r.records = func(in *input) (records, error) { return c.rows(in, r.schema) }
	return r, nil
}

// begin determines the schema.
func (c *csvOptions) begin(ctx context.Context, r *reader) error {
	in, err := r.input(ctx)
	if err != nil {
		return err
	}
	s := newCSVScanner(in, c.comma)
	names, seen, n, err := c.sample(s)
	if err != nil {
		return err
	}
	how := "given"
	switch {
	case c.schema == nil:
		fields := make([]arrow.Field, len(names))
		for i, name := range names {
			t := arrow.DataType(arrow.BinaryTypes.String)
			if c.infer {
				t = seen[i].infer()
			}
			fields[i] = arrow.Field{Name: name, Type: t, Nullable: true}
		}
		r.schema = arrow.NewSchema(fields, nil)
		if err := r.limits.Afford(r.schema, in.span(0, in.offset()), "schema"); err != nil {
			return err
		}
		how = fmt.Sprintf("inferred from %s", fault.Count(n, "row"))
	case c.header && names != nil && !c.placed && !sameNames(names, c.schema):
		return fault.Invalidf("%s: the header has the columns %s, the schema has %s", r.target.Name,
			strings.Join(names, ", "), types(c.schema))
	case names != nil && len(names) != c.schema.NumFields():
		return fault.Invalidf("%s: %s, the schema has %d", r.target.Name, fault.Count(len(names), "column"),
			c.schema.NumFields())
	default:
		r.schema = c.schema
	}
	r.meta = []format.KeyValue{{Key: "header", Value: fmt.Sprint(c.header)},
		{Key: "delimiter", Value: fmt.Sprintf("%q", c.comma)},
		{Key: "schema", Value: how}, {Key: "compressed", Value: fmt.Sprint(in.gzip)}}
	return nil
}

func sameNames(names []string, sc *arrow.Schema) bool {
	if len(names) != sc.NumFields() {
		return false
	}
	for i, n := range names {
		if sc.Field(i).Name != n {
			return false
		}
	}
	return true
}

// sample reads the header, and up to sampleRows rows to infer their types. Damage after the header is reported when the
// rows are read.
func (c *csvOptions) sample(s *csvScanner) (names []string, seen []class, n int, err error) {
	err = s.next(false)
	if err == io.EOF {
		return nil, nil, 0, nil // no rows, no columns
	}
	if err != nil {
		return nil, nil, 0, err
	}
	if n := len(s.fields); int64(n) > s.in.most {
		return nil, nil, 0, fault.Limitf(s.in.span(s.off, s.size), linePath(s.line, ""),
			"expected at most %d fields (field limit), found %d", s.in.most, n)
	}
	loneCR, ended := s.hasLoneCR(), s.in.buf[s.in.at-1] == '\n'
	names = c.names(s)
	s.columns = len(names)
	seen = make([]class, len(names))
	if !c.header {
		c.look(s, seen)
		n++
	}
	if loneCR && (!ended || c.header && !s.in.more()) {
		return nil, nil, 0, fault.Unsupportedf(s.in.span(s.off, s.size), linePath(s.line, ""),
			"a line ends in CR alone; only LF and CR LF end lines here (tr '\\r' '\\n' makes them of it)")
	}
	for n < sampleRows && s.in.offset() < sampleBytes {
		if err := s.next(len(names) == 1); err != nil {
			var one *rowError
			if err = s.resume(err); errors.As(err, &one) {
				continue // later rows determine the types
			}
			if err == io.EOF || errors.Is(err, fault.Corrupt) {
				break
			}
			return nil, nil, 0, err
		}
		if len(s.fields) == len(names) {
			c.look(s, seen)
			n++
		}
	}
	return names, seen, n, nil
}

// hasLoneCR reports whether the record contains a CR outside of quotes without an LF after it. If such a record is the
// whole text, or contains no LF, the lines of the text end in CR alone: all of them would be one record, the names of
// columns without rows. Otherwise a CR is an ordinary character.
func (s *csvScanner) hasLoneCR() bool {
	return slices.ContainsFunc(s.fields, func(f csvField) bool { return !f.quoted && bytes.IndexByte(f.b, '\r') >= 0 })
}

// names returns the names of the columns: those in the header, made unique, or c1, c2, … without a header.
func (c *csvOptions) names(s *csvScanner) []string {
	names := make([]string, len(s.fields))
	used, last := map[string]bool{}, map[string]int{}
	for i, f := range s.fields {
		name := string(f.b)
		if !c.header || name == "" && len(s.fields) > 1 {
			name = fmt.Sprintf("c%d", i+1)
		}
		for base, k := name, max(2, last[name]+1); used[name]; k++ { // from last on, to avoid quadratic time
			name = fmt.Sprintf("%s_%d", base, k)
			last[base] = k
		}
		used[name] = true
		names[i] = name
	}
	return names
}

func (c *csvOptions) look(s *csvScanner, seen []class) {
	for i, f := range s.fields {
		if !f.quoted && string(f.b) == c.null {
			seen[i] |= isNull
		} else {
			seen[i] |= classOf(f.b)
		}
	}
}

// csvRows reads the rows of a CSV text.
type csvRows struct {
	*csvScanner
	opts *csvOptions
	sc   *arrow.Schema
	p    jsonParser // for nested values
}

// csvColumn is the destination of the cells of a column.
type csvColumn struct {
	b        array.Builder
	set      setter // nil: the column is not read
	text     bool   // a quoted empty field is a value, not null
	nullable bool
}

func (c *csvOptions) rows(in *input, sc *arrow.Schema) (records, error) {
	r := &csvRows{csvScanner: newCSVScanner(in, c.comma), opts: c, sc: sc}
	if c.header {
		if err := r.csvScanner.next(false); err != nil && err != io.EOF {
			return nil, err
		}
	}
	r.columns = sc.NumFields()
	return r, nil
}

func (r *csvRows) into(cols []array.Builder, _ *int) func() error {
	to := make([]csvColumn, len(cols))
	for i, b := range cols {
		if b != nil {
			to[i].b, to[i].nullable = b, r.sc.Field(i).Nullable
			to[i].set, to[i].text = r.setter(b, r.sc.Field(i).Type)
		}
	}
	return func() error { return r.row(to) }
}

// setter returns the function that appends cells of a type to b; text is csvColumn.text.
func (r *csvRows) setter(b array.Builder, t arrow.DataType) (set setter, text bool) {
	of := t
	if d, ok := t.(*arrow.DictionaryType); ok {
		of = d.ValueType
	}
	switch of.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW,
		arrow.FIXED_SIZE_BINARY:
		text = true
	}
	if set := textSetter(b, t); set != nil {
		return set, text
	}
	return r.jsonCell(b, t), false
}

// jsonCell returns the setter of nested values, which are JSON.
func (r *csvRows) jsonCell(b array.Builder, t arrow.DataType) setter {
	n := newNode(b, t)
	return func(s []byte) error {
		r.p.reset(s)
		if err := r.p.value(n); err != nil {
			return err
		}
		return r.p.end()
	}
}

func (r *csvRows) weight() int64 { return r.in.offset() + r.p.filled*bytesOfMissing }

func (r *csvRows) next() error {
	if err := r.csvScanner.next(r.sc.NumFields() == 1); err != nil {
		return r.resume(err)
	}
	return nil
}

func (r *csvRows) row(to []csvColumn) error {
	if len(r.fields) != len(to) {
		e := fault.Corruptf(r.in.span(r.off, r.size), linePath(r.line, ""), "%d fields, the table has %s",
			len(r.fields), fault.Count(len(to), "column"))
		e.Cause = &rowError{err: errFields}
		return e
	}
	r.p.room = r.in.limit / bytesOfMissing
	for i, f := range r.fields {
		if to[i].set == nil {
			continue
		}
		if err := r.cell(&to[i], f); err != nil {
			return r.blame(i, f, err)
		}
	}
	return nil
}

var (
	errFields  = errors.New("the row cannot be cut into columns")
	errNotNull = errors.New("null in a column that cannot be null")
)

func (r *csvRows) cell(to *csvColumn, f csvField) error {
	null := !f.quoted && string(f.b) == r.opts.null || len(f.b) == 0 && !to.text
	if !null {
		return to.set(f.b)
	}
	if !to.nullable {
		return errNotNull
	}
	to.b.AppendNull()
	return nil
}

// blame adds the location to the error of a cell of column i and, if its type was inferred, a hint.
func (r *csvRows) blame(i int, f csvField, err error) error {
	if e, ok := asLimitError(err); ok {
		return e.of(r.in, r.off, r.size, r.line)
	}
	at := r.in.span(r.off, r.size)
	before := 0
	for _, g := range r.fields[:i] {
		before += len(g.b) + 1
	}
	if before < int(r.size) && !r.in.gzip && len(r.scratch) == 0 && !r.anyQuoted(i) {
		at = at.Sub(int64(before), int64(len(f.b)))
	}
	reason := ""
	if r.opts.schema == nil {
		reason = "the type was inferred from the first rows; give a schema, or types=string"
	}
	return &fault.Error{Class: fault.Corrupt, At: at, Path: linePath(r.line, r.sc.Field(i).Name), Reason: reason,
		Cause: &rowError{err: err}}
}

func (r *csvRows) anyQuoted(upTo int) bool {
	for _, f := range r.fields[:upTo+1] {
		if f.quoted {
			return true
		}
	}
	return false
}
