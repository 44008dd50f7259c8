package cells

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
)

// JSONLWriter writes record batches as JSON lines: one object per line, with members in the order of the schema.
type JSONLWriter struct {
	w     io.Writer
	names [][]byte
	buf   []byte
}

// NewJSONLWriter returns a writer of rows of sc. Its output is in w after Flush.
func NewJSONLWriter(w io.Writer, sc *arrow.Schema) *JSONLWriter {
	j := &JSONLWriter{w: w, names: make([][]byte, sc.NumFields())}
	for k := range j.names {
		j.names[k] = jsonName(sc.Field(k).Name, k)
	}
	return j
}

// Write appends all rows of b.
func (j *JSONLWriter) Write(b arrow.RecordBatch) error {
	if int(b.NumCols()) != len(j.names) {
		return fault.Bugf("a batch of %s for a writer of %d", fault.Count(b.NumCols(), "column"), len(j.names))
	}
	fields := make([]appender, len(j.names))
	for k, c := range b.Columns() {
		fields[k] = jsonAppender(c)
	}
	for i := range int(b.NumRows()) {
		j.buf = append(appendObject(j.buf, j.names, fields, i), '\n')
		if len(j.buf) >= flushAt {
			if err := j.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Flush passes everything to the underlying writer.
func (j *JSONLWriter) Flush() error { return flush(j.w, &j.buf) }

// Close is Flush.
func (j *JSONLWriter) Close() error { return j.Flush() }

func flush(w io.Writer, buf *[]byte) error {
	_, err := w.Write(*buf)
	*buf = (*buf)[:0]
	return err
}

// CSVWriter writes record batches according to RFC 4180, with lines ending in LF. Null is an empty field, an empty
// string is "".
type CSVWriter struct {
	w     io.Writer
	sc    *arrow.Schema
	comma byte
	head  bool // the header has not been written yet
	Null  string
	buf   []byte
	cell  []byte
}

// NewCSVWriter returns a writer of rows of sc with the field separator comma (an ASCII character). Its output is in w
// after Flush.
func NewCSVWriter(w io.Writer, sc *arrow.Schema, comma rune, header bool) *CSVWriter {
	return &CSVWriter{w: w, sc: sc, comma: byte(comma), head: header}
}

// Write appends all rows of b, and before the first row the header.
func (c *CSVWriter) Write(b arrow.RecordBatch) error {
	if int(b.NumCols()) != c.sc.NumFields() {
		return fault.Bugf("a batch of %s for a writer of %d", fault.Count(b.NumCols(), "column"), c.sc.NumFields())
	}
	c.header()
	cells := make([]appender, b.NumCols())
	nulls := make([]func(int) bool, b.NumCols())
	for k, a := range b.Columns() {
		cells[k], nulls[k] = csvCell(a), Nulls(a)
	}
	for i := range int(b.NumRows()) {
		for k, f := range cells {
			if k > 0 {
				c.buf = append(c.buf, c.comma)
			}
			if nulls[k] != nil && nulls[k](i) {
				c.buf = append(c.buf, c.Null...)
				continue
			}
			c.cell = f(c.cell[:0], i)
			c.field(c.cell)
		}
		c.buf = append(c.buf, '\n')
		if len(c.buf) >= flushAt {
			if err := flush(c.w, &c.buf); err != nil {
				return err
			}
		}
	}
	return nil
}

// Nulls returns a function that reports which rows of a read as null, looking through dictionaries, runs, extensions
// and the members of unions; nil if none does.
func Nulls(a arrow.Array) func(i int) bool {
	switch a := a.(type) {
	case array.ExtensionArray:
		return Nulls(a.Storage())
	case *array.Dictionary:
		if value := Nulls(a.Dictionary()); value != nil {
			return func(i int) bool { return a.IsNull(i) || value(a.GetValueIndex(i)) }
		}
	case *array.RunEndEncoded:
		if value := Nulls(a.Values()); value != nil {
			return func(i int) bool { return value(a.GetPhysicalIndex(i)) }
		}
		return nil
	case *array.Null:
		return func(int) bool { return true }
	case *array.DenseUnion:
		return nullsOfUnion(a, func(i int) int { return int(a.ValueOffset(i)) })
	case *array.SparseUnion:
		return nullsOfUnion(a, func(i int) int { return i })
	}
	if a.NullN() == 0 {
		return nil
	}
	return a.IsNull
}

func nullsOfUnion(a array.Union, row func(i int) int) func(i int) bool {
	members := make([]func(i int) bool, a.NumFields())
	for k := range members {
		members[k] = Nulls(a.Field(k))
	}
	return func(i int) bool {
		null := members[a.ChildID(i)]
		return null != nil && null(row(i))
	}
}

// field writes one cell. It is quoted if necessary, and also if its value looks like null.
func (c *CSVWriter) field(b []byte) {
	if string(b) != c.Null && !c.needsQuotes(b) {
		c.buf = append(c.buf, b...)
		return
	}
	c.buf = append(c.buf, '"')
	for _, x := range b {
		if x == '"' {
			c.buf = append(c.buf, '"')
		}
		c.buf = append(c.buf, x)
	}
	c.buf = append(c.buf, '"')
}

func (c *CSVWriter) needsQuotes(b []byte) bool {
	for _, x := range b {
		if x == '"' || x == c.comma || x == '\n' || x == '\r' {
			return true
		}
	}
	// Readers that trim would lose a space at either end, and all readers a byte order mark at the start.
	return len(b) == 0 || b[0] == ' ' || b[len(b)-1] == ' ' || b[0] == 0xEF
}

func (c *CSVWriter) header() {
	if !c.head {
		return
	}
	c.head = false
	for k, f := range c.sc.Fields() {
		if k > 0 {
			c.buf = append(c.buf, c.comma)
		}
		c.field([]byte(f.Name))
	}
	c.buf = append(c.buf, '\n')
}

// Flush passes everything, at least the header, to the underlying writer.
func (c *CSVWriter) Flush() error {
	c.header()
	return flush(c.w, &c.buf)
}

// Close is Flush.
func (c *CSVWriter) Close() error { return c.Flush() }

// flushAt is the amount of text that is collected before it is written.
const flushAt = 64 << 10
