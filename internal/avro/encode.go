package avro

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Write encodes values as a container file with blocks compressed by deflate. meta are keys and values of the header in
// addition to the schema and the codec; sync ends each block, and should not occur in another file.
func Write(schema string, meta [][2]string, sync [16]byte, values []any) ([]byte, error) {
	s, err := ParseSchema([]byte(schema))
	if err != nil {
		return nil, err
	}
	meta = append([][2]string{{"avro.schema", schema}, {"avro.codec", "deflate"}}, meta...)
	out := binary.AppendVarint([]byte(magic), int64(len(meta)))
	for _, m := range meta {
		out = appendString(appendString(out, m[0]), m[1])
	}
	out = append(append(out, 0), sync[:]...)
	const most = 1000 // values in a block
	for part := range slices.Chunk(values, most) {
		var body []byte
		for _, v := range part {
			if body, err = appendValue(body, s, v); err != nil {
				return nil, err
			}
		}
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, flate.DefaultCompression)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		out = binary.AppendVarint(out, int64(len(part)))
		out = binary.AppendVarint(out, int64(packed.Len()))
		out = append(append(out, packed.Bytes()...), sync[:]...)
	}
	return out, nil
}

func appendString[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendVarint(b, int64(len(s))), s...)
}

// mismatch returns the error for a value that its schema does not allow.
func mismatch(s *Schema, v any) error {
	return fmt.Errorf("avro: %T is no value of type %s", v, s.Type)
}

func appendValue(b []byte, s *Schema, v any) ([]byte, error) {
	switch s.Type {
	case "union":
		for i, branch := range s.Union {
			if (v == nil) == (branch.Type == "null") {
				return appendValue(binary.AppendVarint(b, int64(i)), branch, v)
			}
		}
	case "null":
		return b, nil
	case "boolean":
		if x, ok := v.(bool); ok {
			return append(b, map[bool]byte{true: 1}[x]), nil
		}
	case "int", "long":
		switch x := v.(type) {
		case int:
			return binary.AppendVarint(b, int64(x)), nil
		case int64:
			return binary.AppendVarint(b, x), nil
		}
	case "float":
		if x, ok := v.(float64); ok {
			return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x))), nil
		}
	case "double":
		if x, ok := v.(float64); ok {
			return binary.LittleEndian.AppendUint64(b, math.Float64bits(x)), nil
		}
	case "bytes":
		if x, ok := v.([]byte); ok {
			return appendString(b, x), nil
		}
	case "fixed":
		if x, ok := v.([]byte); ok && len(x) == s.Size {
			return append(b, x...), nil
		}
	case "string":
		if x, ok := v.(string); ok {
			return appendString(b, x), nil
		}
	default:
		return appendNested(b, s, v)
	}
	return nil, mismatch(s, v)
}

func appendNested(b []byte, s *Schema, v any) (_ []byte, err error) {
	switch x := v.(type) {
	case map[string]any:
		if s.Type != "record" {
			break
		}
		for _, f := range s.Fields {
			if b, err = appendValue(b, f.Type, x[f.Name]); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return b, nil
	case []any:
		if s.Type != "array" {
			break
		}
		if len(x) > 0 {
			b = binary.AppendVarint(b, int64(len(x)))
		}
		for _, item := range x {
			if b, err = appendValue(b, s.Items, item); err != nil {
				return nil, err
			}
		}
		return append(b, 0), nil
	}
	return nil, mismatch(s, v)
}
