package ipc

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/ipc/flat"
	"stoa/internal/arrowschema"
	"stoa/vec"
)

// feed passes checked messages to the library. It implements ipc.MessageReader.
type feed struct {
	queue []*message               // passed on first
	more  func() (*message, error) // passed on next; io.EOF at the end
	check func(*message) error     // called before a message is passed on; may be nil
	cur   *ipc.Message             // in use by the library
	last  fault.Span               // of the message passed on last
	err   error                    // the error of more, if not io.EOF
	dicts int64                    // decompressed bytes of the dictionaries passed on
	room  int64                    // dicts plus the bytes of the message passed on last
}

func (f *feed) Retain()  {}
func (f *feed) Release() { f.drop() }

func (f *feed) drop() {
	if f.cur != nil {
		f.cur.Release()
		f.cur = nil
	}
}

func (f *feed) Message() (*ipc.Message, error) {
	f.drop()
	var m *message
	if len(f.queue) > 0 {
		m, f.queue = f.queue[0], f.queue[1:]
	} else {
		var err error
		if m, err = f.more(); err != nil {
			if err != io.EOF {
				f.err = err
			}
			return nil, err
		}
	}
	f.last, f.room = m.at, f.dicts+m.Batch.Size
	if m.Kind == flat.Dictionary {
		f.dicts = f.room
	}
	if f.check != nil {
		if err := f.check(m); err != nil {
			return nil, err
		}
	}
	body := m.body
	if body == nil {
		body = memory.NewBufferBytes(nil)
	}
	f.cur = ipc.NewMessage(memory.NewBufferBytes(m.meta), body)
	return f.cur, nil
}

// fault converts an error of the library about the last message to a fault.Error.
func (f *feed) fault(err error) error {
	if f.err != nil {
		return f.err
	}
	if _, ok := err.(*fault.Error); ok {
		return err
	}
	class := fault.Corrupt
	if arrowschema.LongInteger(err) {
		class = fault.Unsupported
	}
	return &fault.Error{Class: class, At: f.last, Path: "message", Cause: flat.Reason(err)}
}

// decoder decodes the messages of a feed into record batches. Panics of the library become errors.
type decoder struct {
	feed *feed
	lib  *ipc.Reader
}

func newDecoder(f *feed, mem memory.Allocator) (*decoder, error) {
	lib, err := ipc.NewReaderFromMessageReader(f, ipc.WithAllocator(limitedAllocator{mem, &f.room}))
	if err != nil {
		return nil, f.fault(err)
	}
	return &decoder{f, lib}, nil
}

// next returns the next batch, with columns cols validated in full, or nil at the end. It is valid until the next call.
func (d *decoder) next(cols []int) (b arrow.RecordBatch, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, d.feed.fault(flat.Reason(p))
		}
	}()
	if !d.lib.Next() {
		if d.feed.err != nil {
			return nil, d.feed.err
		}
		if err := d.lib.Err(); err != nil {
			return nil, d.feed.fault(err)
		}
		return nil, nil
	}
	b = d.lib.RecordBatch()
	for _, c := range cols {
		if b.Column(c).Len() != int(b.NumRows()) {
			return nil, d.feed.fault(fmt.Errorf("column %q has %d of %s", b.ColumnName(c), b.Column(c).Len(),
				fault.Count(b.NumRows(), "row")))
		}
		if f := b.Schema().Field(c); !f.Nullable && b.Column(c).NullN() > 0 {
			return nil, d.feed.fault(fmt.Errorf("column %q has %s; by the schema it has none", f.Name,
				fault.Count(b.Column(c).NullN(), "null")))
		}
		if err := validate(b.Column(c)); err != nil {
			return nil, d.feed.fault(fmt.Errorf("column %q: %w", b.ColumnName(c), err))
		}
	}
	return b, nil
}

// digitsFit returns an error if a decimal has more digits than its type, which the library does not check.
func digitsFit(d arrow.ArrayData) error {
	for _, c := range d.Children() {
		if err := digitsFit(c); err != nil {
			return err
		}
	}
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		return digitsFit(dict)
	}
	if _, ok := d.DataType().(arrow.DecimalType); !ok {
		return nil
	}
	a := array.MakeFromData(d)
	defer a.Release()
	if i := vec.TooManyDigitsIn(a); i >= 0 {
		return fmt.Errorf("entry %d has more digits than %s", i, d.DataType())
	}
	return nil
}

// validate is the library's ValidateFull, which rejects null arrays and empty unions in the form in which the library
// reads them.
func validate(a arrow.Array) error {
	if err := digitsFit(a.Data()); err != nil {
		return err
	}
	if !lacksBuffers(a.DataType()) {
		return array.ValidateFull(a)
	}
	data := withBuffers(a.Data())
	defer data.Release()
	a = array.MakeFromData(data)
	defer a.Release()
	return array.ValidateFull(a)
}

// lacksBuffers reports whether arrays of type t may lack buffers that withBuffers adds.
func lacksBuffers(t arrow.DataType) bool {
	if n, ok := t.(arrow.NestedType); ok {
		for _, f := range n.Fields() {
			if lacksBuffers(f.Type) {
				return true
			}
		}
	}
	return t.ID() == arrow.NULL || t.ID() == arrow.DENSE_UNION
}

// withBuffers copies the structure of d and adds the buffers that it lacks: the one (absent) buffer of null arrays, and
// the offsets of empty dense unions.
func withBuffers(d arrow.ArrayData) arrow.ArrayData {
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		children[i] = withBuffers(c)
		defer children[i].Release()
	}
	buffers := d.Buffers()
	switch {
	case d.DataType().ID() == arrow.NULL:
		buffers = []*memory.Buffer{nil}
	case d.DataType().ID() == arrow.DENSE_UNION && len(buffers) == 3 && buffers[2] == nil:
		buffers = []*memory.Buffer{nil, buffers[1], memory.NewBufferBytes(nil)}
	}
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		return array.NewDataWithDictionary(d.DataType(), d.Len(), buffers, d.NullN(), d.Offset(), dict)
	}
	return array.NewData(d.DataType(), d.Len(), buffers, children, d.NullN(), d.Offset())
}

func (d *decoder) release() {
	defer func() { _ = recover() }() // the library may have stopped in the middle of a message
	d.lib.Release()
}

// schemaOf returns the schema in a schema message.
func schemaOf(m *message) (*arrow.Schema, error) {
	d, err := newDecoder(&feed{queue: []*message{m}, more: eof}, memory.NewGoAllocator())
	if err != nil {
		return nil, err
	}
	sc := d.lib.Schema()
	d.release()
	if err := arrowschema.CheckTypes(sc.Fields()); err != nil {
		return nil, &fault.Error{Class: fault.Corrupt, At: m.at, Path: "schema", Cause: err}
	}
	return sc, nil
}

func eof() (*message, error) { return nil, io.EOF }
