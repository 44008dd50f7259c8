// Package toy is a minimal format: a parser, a reader, and a decoder of pages. Everything else that stoa does with it
// follows from the contract, as tests check.
//
// A file is the magic, pages, a footer in JSON, its length in four bytes, and the magic again. A page is a CRC-32 and
// its values: integers of eight bytes, or texts preceded by their length in four bytes; everything is little-endian.
package toy

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

const magic = "TOY1"

// Format is all that is reported for it.
var Format = format.Format{
	Name:       "toy",
	Title:      "toy file",
	Extensions: []string{".toy"},
	Magics:     []format.Magic{{Bytes: magic, Name: "a toy file"}},
	Probe:      probe,
	Open:       open,
}

// footer is the metadata of a file.
type footer struct {
	Names  []string
	Groups []group
}

type group struct {
	Rows    int64
	Columns [][]page
}

type page struct{ Off, Len, Rows int64 }

// types of columns, by the first letter of their name.
var types = map[byte]arrow.DataType{'n': arrow.PrimitiveTypes.Int64, 't': arrow.BinaryTypes.String}

func probe(ctx context.Context, t format.Target) (format.Match, error) {
	src, base, size, err := t.Open(ctx)
	if err != nil || size < int64(len(magic)) {
		return format.No, nil // a directory, or too short
	}
	defer src.Close()
	head := make([]byte, len(magic))
	if _, err := src.ReadAt(ctx, head, base); err != nil && err != io.EOF || string(head) != magic {
		return format.No, err
	}
	return format.Certain, nil
}

// reader is an open file.
type reader struct {
	src    store.Source
	at     fault.Span
	footer footer
	schema *arrow.Schema
}

func open(ctx context.Context, t format.Target, _ format.OpenOptions) (format.Reader, error) {
	src, base, size, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	r := &reader{src: src, at: fault.Span{Object: t.Name, Off: base, Len: size}}
	if err := r.parse(ctx); err != nil {
		src.Close()
		return nil, err
	}
	return r, nil
}

func (r *reader) parse(ctx context.Context) error {
	const tail = 4 + int64(len(magic))
	if r.at.Len < tail+int64(len(magic)) {
		return fault.Corruptf(r.at, "footer", "the file is too short for one")
	}
	end := r.at.Sub(r.at.Len-tail, tail)
	b := make([]byte, tail)
	if err := format.ReadFull(ctx, r.src, end, "footer", b); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if string(b[4:]) != magic || n > r.at.Len-tail-int64(len(magic)) {
		return fault.Corruptf(end, "footer", "%q ends no toy file", b)
	}
	at := r.at.Sub(r.at.Len-tail-n, n)
	b = make([]byte, n)
	if err := format.ReadFull(ctx, r.src, at, "footer", b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &r.footer); err != nil {
		return fault.Corruptf(at, "footer", "%v", err)
	}
	var fields []arrow.Field
	for _, name := range r.footer.Names {
		if name == "" || types[name[0]] == nil {
			return fault.Corruptf(at, "footer.Names", "%q has no type", name)
		}
		fields = append(fields, arrow.Field{Name: name, Type: types[name[0]]})
	}
	for _, g := range r.footer.Groups {
		if len(g.Columns) != len(fields) {
			return fault.Corruptf(at, "footer.Groups", "%d columns of %d", len(g.Columns), len(fields))
		}
		for _, pages := range g.Columns { // no checksum is over these numbers: they are compared with each other
			n := int64(0)
			for _, p := range pages {
				n += p.Rows
			}
			if n != g.Rows {
				return fault.Corruptf(at, "footer.Groups", "pages of %d rows in a row group of %d", n, g.Rows)
			}
		}
	}
	r.schema = arrow.NewSchema(fields, nil)
	return nil
}

func (r *reader) Schema() *arrow.Schema   { return r.schema }
func (r *reader) Order() []format.Key     { return nil }
func (r *reader) Meta() []format.KeyValue { return nil }
func (r *reader) Close() error            { return r.src.Close() }

func (r *reader) Columns() (out []format.Column) {
	for i, f := range r.schema.Fields() {
		out = append(out, format.Column{Name: f.Name, Path: []int{i}, Parent: -1, Has: format.Values, Type: f.Type})
	}
	return out
}

func (r *reader) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	p := format.Part{Ref: r.at.Object, Bytes: r.at.Len}
	for _, g := range r.footer.Groups {
		p.Rows += g.Rows
	}
	return func(yield func(format.Part, error) bool) { yield(p, nil) }
}

func (r *reader) RowGroups(_ context.Context, p format.Part, _ format.Query) (out []format.RowGroup, err error) {
	for i, g := range r.footer.Groups {
		out = append(out, format.RowGroup{Part: p.Ref, Index: i, Rows: g.Rows, Bytes: -1})
	}
	return out, nil
}

func (r *reader) Chunk(_ context.Context, g format.RowGroup, col int, _ vec.Range) (format.Chunk, error) {
	return &chunk{r: r, pages: r.footer.Groups[g.Index].Columns[col], typ: r.schema.Field(col).Type}, nil
}

// chunk is a column of a row group.
type chunk struct {
	r     *reader
	pages []page
	typ   arrow.DataType
	next  int
	first int64
}

func (c *chunk) Dict() (format.Page, bool) { return format.Page{}, false }

func (c *chunk) Next(context.Context) (format.Page, error) {
	if c.next == len(c.pages) {
		return format.Page{}, io.EOF
	}
	x := c.pages[c.next]
	p := format.Page{Ordinal: c.next, First: c.first, Rows: x.Rows, Entries: x.Rows,
		Spans: []fault.Span{{Object: c.r.at.Object, Off: c.r.at.Off + x.Off, Len: x.Len}}}
	c.next, c.first = c.next+1, c.first+x.Rows
	return p, nil
}

// Decode appends the values of a page.
func (c *chunk) Decode(t *format.Task, dst *vec.Vector) error {
	at, b := t.Page.Spans[0], t.Bytes[0]
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != crc32.ChecksumIEEE(b[4:]) {
		return fault.Corruptf(at, "page.crc", "its bytes have another checksum")
	}
	b = b[4:]
	k := dst.Extend(int(t.N))
	if c.typ.ID() == arrow.INT64 {
		if int64(len(b)) != 8*t.N {
			return fault.Corruptf(at, "page", "%d bytes for %d integers", len(b), t.N)
		}
		copy(dst.Data(k), b)
		return nil
	}
	offs := dst.Offsets(k)
	for i := range offs[1:] {
		if len(b) < 4 || uint32(len(b)-4) < binary.LittleEndian.Uint32(b) {
			return fault.Corruptf(at, "page", "text %d of %d is cut", i, t.N)
		}
		n := binary.LittleEndian.Uint32(b)
		to, err := dst.Bytes(offs[i], int64(n))
		if err != nil {
			return err
		}
		copy(to, b[4:4+n])
		offs[i+1], b = offs[i]+int32(n), b[4+n:]
	}
	return nil
}

// Column is a column of File: its name begins with n (integers) or t (texts).
type Column struct {
	Name  string
	Ints  []int64
	Texts []string
}

// File returns a file of row groups of at most groupRows rows, in pages of at most pageRows rows.
func File(groupRows, pageRows int, columns ...Column) []byte {
	out, f := []byte(magic), footer{}
	rows := len(columns[0].Ints) + len(columns[0].Texts)
	for _, c := range columns {
		f.Names = append(f.Names, c.Name)
	}
	for from := 0; from < rows; from += groupRows {
		to := min(from+groupRows, rows)
		g := group{Rows: int64(to - from)}
		for _, c := range columns {
			var pages []page
			for at := from; at < to; at += pageRows {
				end := min(at+pageRows, to)
				b := c.page(at, end)
				pages = append(pages, page{int64(len(out)), int64(len(b)), int64(end - at)})
				out = append(out, b...)
			}
			g.Columns = append(g.Columns, pages)
		}
		f.Groups = append(f.Groups, g)
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	out = append(out, b...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(b))), magic...)
}

func (c *Column) page(from, to int) []byte {
	var b []byte
	if c.Ints != nil {
		for _, v := range c.Ints[from:to] {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
	} else {
		for _, s := range c.Texts[from:to] {
			b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
		}
	}
	return append(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(b)), b...)
}
