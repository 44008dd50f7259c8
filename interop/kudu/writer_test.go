//go:build interop

package kudu

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/cfile"
)

// Only this file uses stoa's writers.

type fileOptions struct {
	Version     int // 1 or 2
	NoChecksums bool
	IndexBlock  int // 0: the writer's default
	Restarts    int // of prefix encoding; 0: the writer's default
	Piece       int // rows per call; 0: many different numbers
	ValueIndex  bool
}

var dataTypes = map[string]cfile.Type{
	"UINT8": cfile.Uint8, "INT8": cfile.Int8, "UINT16": cfile.Uint16, "INT16": cfile.Int16, "UINT32": cfile.Uint32,
	"INT32":  cfile.Int32,
	"UINT64": cfile.Uint64, "INT64": cfile.Int64, "STRING": cfile.String, "BOOL": cfile.Bool, "FLOAT": cfile.Float,
	"DOUBLE": cfile.Double,
	"BINARY": cfile.Binary, "UNIXTIME_MICROS": cfile.UnixtimeMicros, "INT128": cfile.Int128,
	"DECIMAL32": cfile.Decimal32,
	"DECIMAL64": cfile.Decimal64, "DECIMAL128": cfile.Decimal128, "VARCHAR": cfile.Varchar, "DATE": cfile.Date,
}

var encodings = map[string]cfile.Encoding{
	"PLAIN_ENCODING": cfile.Plain, "PREFIX_ENCODING": cfile.Prefix, "RLE": cfile.RLE, "DICT_ENCODING": cfile.Dict,
	"BIT_SHUFFLE": cfile.BitShuffle,
}

var compressions = map[string]cfile.Compression{
	"": cfile.NoCompression, "NO_COMPRESSION": cfile.NoCompression, "SNAPPY": cfile.Snappy, "LZ4": cfile.LZ4,
	"ZLIB": cfile.Zlib,
}

func (c column) field() cfile.Field {
	return cfile.Field{Name: c.Name, Type: dataTypes[c.Type], Nullable: c.Nullable, Precision: c.Prec,
		Scale: c.Scale, Length: c.Len}
}

// writeColumn writes the cells as a CFile, in pieces of odd lengths.
func writeColumn(c column, o fileOptions, cells []cell) ([]byte, error) {
	return writeArray(c, o, arrowOf(c, cells))
}

func writeArray(c column, o fileOptions, arr arrow.Array) ([]byte, error) {
	var out bytes.Buffer
	w, err := cfile.NewWriter(&out, c.field(), cfile.WriterOptions{
		Version: o.Version, NoChecksums: o.NoChecksums, Encoding: encodings[c.Enc], Compression: compressions[c.Comp],
		BlockSize: c.BlockSize, IndexBlockSize: o.IndexBlock, RestartInterval: o.Restarts, ValueIndex: o.ValueIndex,
	})
	if err != nil {
		return nil, err
	}
	pieces := []int{1, 0, 99, 100, 777, 8, 1001, 3, 4096}
	if o.Piece > 0 {
		pieces = []int{o.Piece}
	}
	for from, i := 0, 0; from < arr.Len(); i++ {
		to := min(arr.Len(), from+pieces[i%len(pieces)])
		if err := w.Append(array.NewSlice(arr, int64(from), int64(to))); err != nil {
			return nil, err
		}
		from = to
	}
	sum, err := w.Close()
	if err != nil {
		return nil, err
	}
	return out.Bytes(), same(sum, arr.Len(), out.Len())
}

// arrowOf returns the cells as an Arrow array.
func arrowOf(c column, cells []cell) arrow.Array {
	mem := memory.DefaultAllocator
	switch c.Type {
	case "BOOL":
		return build(array.NewBooleanBuilder(mem), cells)
	case "INT8":
		return buildAs[int8, int64](array.NewInt8Builder(mem), cells)
	case "INT16":
		return buildAs[int16, int64](array.NewInt16Builder(mem), cells)
	case "INT32":
		return buildAs[int32, int64](array.NewInt32Builder(mem), cells)
	case "INT64":
		return buildAs[int64, int64](array.NewInt64Builder(mem), cells)
	case "UINT8":
		return buildAs[uint8, uint64](array.NewUint8Builder(mem), cells)
	case "UINT16":
		return buildAs[uint16, uint64](array.NewUint16Builder(mem), cells)
	case "UINT32":
		return buildAs[uint32, uint64](array.NewUint32Builder(mem), cells)
	case "UINT64":
		return buildAs[uint64, uint64](array.NewUint64Builder(mem), cells)
	case "UNIXTIME_MICROS":
		return buildAs[arrow.Timestamp, int64](array.NewTimestampBuilder(mem,
			&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}), cells)
	case "DATE":
		return buildAs[arrow.Date32, int64](array.NewDate32Builder(mem), cells)
	case "FLOAT":
		return build(array.NewFloat32Builder(mem), cells)
	case "DOUBLE":
		return build(array.NewFloat64Builder(mem), cells)
	case "DECIMAL32":
		return buildAs[decimal.Decimal32,
			int64](array.NewDecimal32Builder(mem,
			&arrow.Decimal32Type{Precision: int32(c.Prec), Scale: int32(c.Scale)}), cells)
	case "DECIMAL64":
		return buildAs[decimal.Decimal64,
			int64](array.NewDecimal64Builder(mem,
			&arrow.Decimal64Type{Precision: int32(c.Prec), Scale: int32(c.Scale)}), cells)
	case "DECIMAL128":
		b := array.NewDecimal128Builder(mem, &arrow.Decimal128Type{Precision: int32(c.Prec), Scale: int32(c.Scale)})
		for _, v := range cells {
			if v == nil {
				b.AppendNull()
			} else {
				b.Append(decimal128.FromBigInt(v.(*big.Int)))
			}
		}
		return b.NewArray()
	case "INT128":
		b := array.NewFixedSizeBinaryBuilder(mem, &arrow.FixedSizeBinaryType{ByteWidth: 16})
		for _, v := range cells {
			if v == nil {
				b.AppendNull()
			} else {
				b.Append(stored(c.Type, v))
			}
		}
		return b.NewArray()
	case "BINARY":
		return build(array.NewBinaryBuilder(mem, arrow.BinaryTypes.Binary), cells)
	}
	b := array.NewStringBuilder(mem)
	for _, v := range cells {
		if v == nil {
			b.AppendNull()
		} else {
			b.Append(string(v.([]byte)))
		}
	}
	return b.NewArray()
}

type builder[T any] interface {
	array.Builder
	Append(T)
}

func build[T any](b builder[T], cells []cell) arrow.Array {
	for _, v := range cells {
		if v == nil {
			b.AppendNull()
		} else {
			b.Append(v.(T))
		}
	}
	return b.NewArray()
}

// buildAs converts cells of type S to an array of Ts.
func buildAs[T, S int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | arrow.Timestamp | arrow.Date32 |
	decimal.Decimal32 | decimal.Decimal64](b builder[T], cells []cell) arrow.Array {
	for _, v := range cells {
		if v == nil {
			b.AppendNull()
		} else {
			b.Append(T(v.(S)))
		}
	}
	return b.NewArray()
}

// otherArray returns cells (int64, or strings) as an array of a type that needs no builder of its own.
func otherArray(typ arrow.DataType, cells []cell) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, typ)
	for _, v := range cells {
		switch b := b.(type) {
		case *array.LargeStringBuilder:
			if v != nil {
				b.Append(string(v.([]byte)))
				continue
			}
		case *array.BinaryBuilder:
			if v != nil {
				b.Append(v.([]byte))
				continue
			}
		case *array.Decimal128Builder:
			if v != nil {
				b.Append(decimal128.FromI64(v.(int64)))
				continue
			}
		case *array.Decimal64Builder:
			if v != nil {
				b.Append(decimal.Decimal64(v.(int64)))
				continue
			}
		case *array.DurationBuilder:
			if v != nil {
				b.Append(arrow.Duration(v.(int64)))
				continue
			}
		case *array.Time64Builder:
			if v != nil {
				b.Append(arrow.Time64(v.(int64)))
				continue
			}
		case *array.Time32Builder:
			if v != nil {
				b.Append(arrow.Time32(v.(int64)))
				continue
			}
		case *array.TimestampBuilder:
			if v != nil {
				b.Append(arrow.Timestamp(v.(int64)))
				continue
			}
		case *array.Date64Builder:
			if v != nil {
				b.Append(arrow.Date64(v.(int64)))
				continue
			}
		default:
			panic(fmt.Sprintf("%T", b))
		}
		b.AppendNull()
	}
	return b.NewArray()
}

// dictionaryOf returns the cells as codes of a dictionary that also has unused words.
func dictionaryOf(c column, cells []cell, typ arrow.DataType) arrow.Array {
	words := []cell{}
	code := map[string]int32{}
	for i, v := range append([]cell{fromHash(c, 99, false)}, cells...) {
		if _, ok := code[wired(v)]; v != nil && (!ok || i == 0) {
			code[wired(v)] = int32(len(words))
			words = append(words, v)
		}
	}
	b := array.NewInt32Builder(memory.DefaultAllocator)
	for _, v := range cells {
		if v == nil {
			b.AppendNull()
		} else {
			b.Append(code[wired(v)])
		}
	}
	return array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: typ},
		b.NewArray(), arrowOf(c, words))
}

// A side file's layout is Kudu's own unless the test asks for smaller blocks.
func (o fileOptions) side() cfile.WriterOptions {
	w := cfile.WriterOptions{Version: o.Version, NoChecksums: o.NoChecksums, IndexBlockSize: o.IndexBlock}
	if o.IndexBlock != 0 {
		w.BlockSize = 512
	}
	return w
}

// writeBloom writes a bloom file of encoded keys.
func writeBloom(keys [][]byte, o fileOptions) ([]byte, error) {
	var out bytes.Buffer
	b := cfile.BloomOptions{Version: o.Version, NoChecksums: o.NoChecksums, IndexBlockSize: o.IndexBlock}
	if o.IndexBlock != 0 {
		b.BlockBytes = 512
	}
	w, err := cfile.NewBloomWriter(&out, b)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if err := w.Add(k); err != nil {
			return nil, err
		}
	}
	sum, err := w.Close()
	return out.Bytes(), errors.Join(err, same(sum, len(keys), out.Len()))
}

// writeAdhocIndex writes the ad-hoc index of encoded keys.
func writeAdhocIndex(keys [][]byte, o fileOptions) ([]byte, error) {
	var out bytes.Buffer
	w, err := cfile.NewAdhocIndexWriter(&out, o.side())
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if err := w.Add(k); err != nil {
			return nil, err
		}
	}
	sum, err := w.Close()
	return out.Bytes(), errors.Join(err, same(sum, len(keys), out.Len()))
}

// writeDelta writes a delta file.
func writeDelta(undo bool, entries []change, o fileOptions) ([]byte, error) {
	var out bytes.Buffer
	w, err := cfile.NewDeltaWriter(&out, undo, o.side())
	if err != nil {
		return nil, err
	}
	var l cfile.ChangeList
	for _, e := range entries {
		switch e.Kind {
		case 1:
			l.Update()
		case 2:
			l.Delete()
		case 3:
			l.Reinsert()
		}
		for _, c := range e.Cols {
			if c.Null {
				l.SetNull(uint32(c.ID))
			} else {
				l.Set(uint32(c.ID), c.Raw)
			}
		}
		if err := w.Add(uint32(e.Row), e.Time, &l); err != nil {
			return nil, err
		}
	}
	sum, err := w.Close()
	return out.Bytes(), errors.Join(err, same(sum, len(entries), out.Len()))
}

func same(sum cfile.Summary, rows, size int) error {
	if sum.Rows != int64(rows) || sum.Bytes != int64(size) {
		return fmt.Errorf("the summary says %d rows, %d bytes; it were %d and %d", sum.Rows, sum.Bytes, rows, size)
	}
	return nil
}
