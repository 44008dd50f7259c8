package iceberg

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/iceberg/internal/meta"
)

// findDefaults reads the values that fields have in the rows of files that lack them, by the fields' ids: those of all
// schemas, because equality deletes may compare columns that were dropped since.
func (op *snapshotReader) findDefaults() error {
	op.defaults = map[int]arrow.Array{}
	for _, s := range op.table.Schemas {
		if err := op.defaultsOf(s.Fields, ""); err != nil {
			return err
		}
	}
	return nil
}

func (op *snapshotReader) defaultsOf(fields []meta.Field, parent string) error {
	for _, f := range fields {
		if err := op.defaultsOf(f.Type.Fields, parent+f.Name+"."); err != nil {
			return err
		}
		d := f.InitialDefault
		if len(d) == 0 || bytes.Equal(d, []byte("null")) {
			continue
		}
		at := fault.Span{Object: op.file}
		if len(f.Type.Fields) > 0 {
			return fault.Unsupportedf(at, "schemas", "field %s%s has the initial-default %s, of type %s: only "+
				"those of plain types are read", parent, f.Name, d, f.Type.Name)
		}
		one, err := meta.Arrow([]meta.Field{f}, 0)
		if err != nil {
			continue // of a schema that is not read
		}
		a, err := defaultValue(one[0].Type, d)
		if err != nil {
			return fault.Corruptf(at, "schemas.initial-default", "field %s%s: expected a value of type %s, found "+
				"%s: %v", parent, f.Name, f.Type.Name, d, err)
		}
		op.defaults[f.ID] = a
	}
	return nil
}

// defaultValue parses a value as Iceberg's JSON stores single values.
func defaultValue(t arrow.DataType, raw json.RawMessage) (arrow.Array, error) {
	storage := t
	x, extended := t.(arrow.ExtensionType)
	if extended {
		storage = x.StorageType()
	}
	var text string
	switch storage.ID() {
	case arrow.BOOL, arrow.INT32, arrow.INT64, arrow.FLOAT32, arrow.FLOAT64:
		text = string(raw)
	default:
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
	}
	b := array.NewBuilder(memory.NewGoAllocator(), storage)
	defer b.Release()
	var err error
	switch b := b.(type) {
	case *array.BinaryBuilder:
		var bin []byte
		if bin, err = hex.DecodeString(text); err == nil {
			b.Append(bin)
		}
	case *array.FixedSizeBinaryBuilder:
		var bin []byte
		bin, err = hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if n := b.Type().(*arrow.FixedSizeBinaryType).ByteWidth; err == nil && len(bin) != n {
			err = fmt.Errorf("it has %d bytes", len(bin))
		}
		if err == nil {
			b.Append(bin)
		}
	case *array.StringBuilder:
		b.Append(text)
	default:
		err = b.AppendValueFromString(text)
	}
	if err != nil {
		return nil, err
	}
	a := b.NewArray()
	if a.NullN() > 0 {
		return nil, fmt.Errorf("it is no value")
	}
	if extended {
		return array.NewExtensionArrayWithStorage(x, a), nil
	}
	return a, nil
}
