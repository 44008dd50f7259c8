// Package arrowschema keeps an Arrow schema as bytes inside files of other formats: the Arrow IPC message of
// the schema, as Parquet's ARROW:schema has it.
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

// end is the mark at the end of an IPC stream.
const end = 8

// Encode is the schema message of sc.
func Encode(sc *arrow.Schema) ([]byte, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(sc))
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes()[:b.Len()-end], nil
}

// Decode is DecodeWithin with the limits that hold if none are given.
func Decode(b []byte) (*arrow.Schema, error) {
	return DecodeWithin(b, format.Limits{}, fault.Span{}, "")
}

// DecodeWithin reads what Encode, or another program, wrote. The library believes lengths and may panic at bytes
// that are no schema, so they are looked through first. What is more than the limits allow is an error of class
// Limit about field path of the bytes at.
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
