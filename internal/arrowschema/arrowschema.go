// Package arrowschema encodes an Arrow schema as bytes for use inside files of other formats: as the schema's Arrow IPC
// message, like Parquet's ARROW:schema.
package arrowschema

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc/flat"
)

// end is the length of the end-of-stream marker of an IPC stream.
const end = 8

// Encode returns the schema message of sc.
func Encode(sc *arrow.Schema) ([]byte, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(sc))
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes()[:b.Len()-end], nil
}

// Decode is DecodeWithin with the default limits.
func Decode(b []byte) (*arrow.Schema, error) {
	return DecodeWithin(b, format.Limits{}, fault.Span{}, "")
}

// DecodeWithin decodes a schema that Encode or another program encoded. The library trusts lengths and may panic on
// bytes that are not a schema, so the bytes are checked first. If a limit is exceeded, the error is of class Limit,
// about field path of the bytes at.
func DecodeWithin(b []byte, l format.Limits, at fault.Span, path string) (sc *arrow.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			sc, err = nil, fmt.Errorf("not a schema: %w", flat.Reason(p))
		}
	}()
	e, err := flat.CheckSchema(b)
	if err == nil {
		err = l.FitSize(e.Fields, e.Depth, at, path)
	}
	if err == nil {
		err = l.Memory().Take(e.Memory, at, path)
	}
	if err != nil {
		return nil, err
	}
	r, err := ipc.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, flat.Reason(err)
	}
	defer r.Release()
	if err := CheckTypes(r.Schema().Fields()); err != nil {
		return nil, err
	}
	return r.Schema(), nil
}
