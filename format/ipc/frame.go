package ipc

import (
	"encoding/binary"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/format/ipc/flat"
)

// frame writes the messages of the library's stream writer as a file: magic, messages, footer. The library's own file
// writer cannot extend a dictionary, which files allow.
type frame struct {
	w       io.Writer
	pos     int64
	schema  []byte // the flatbuffer of the schema message
	dicts   []flat.Block
	batches []flat.Block
}

func (f *frame) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.pos += int64(n)
	return n, err
}

// Start does nothing: the library calls it only for its own payload writers.
func (f *frame) Start() error { return nil }

func (f *frame) WritePayload(p ipc.Payload) error {
	if f.pos == 0 {
		if _, err := f.Write([]byte(fileMagic + "\x00\x00")); err != nil {
			return err
		}
	}
	meta := p.Meta()
	defer meta.Release()
	h, err := flat.ParseHeader(meta.Bytes())
	if err != nil {
		return err
	}
	at := flat.Block{Off: f.pos, Body: h.Body}
	n, err := p.WritePayload(f)
	at.Meta = int32(n)
	switch h.Kind {
	case flat.Schema:
		f.schema = append([]byte{}, meta.Bytes()...)
	case flat.Dictionary:
		f.dicts = append(f.dicts, at)
	case flat.RecordBatch:
		f.batches = append(f.batches, at)
	}
	return err
}

func (f *frame) Close() error {
	footer, err := flat.AppendFooter(f.schema, f.dicts, f.batches)
	if err != nil {
		return err
	}
	b := append([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}, footer...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(footer)))
	_, err = f.Write(append(b, fileMagic...))
	return err
}
