package table

import (
	"cmp"
	"context"
	"errors"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/region"
	"stoa/wire"
)

// OpenDictionary opens a .dict, a .dictmeta or a .sortindex as a table.
//
//	.dict       code int32, value (null for the text of null), load int32 (ordinal in .dictmeta; null if no finished
//	            load wrote it)
//	.dictmeta   load, min_surrogate_key, max_surrogate_key, start_offset, end_offset, chunk_count
//	.sortindex  position (from 1), sort_index (the code at that position), sort_index_inverted (the rank of
//	            the code that equals the position)
func OpenDictionary(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, error) {
	s, c, err := openAuxiliary(ctx, tg, op.Limits, "")
	if err != nil {
		return nil, err
	}
	c.Trace(op.Tracer, 0)
	switch ByName(tg.Name) {
	case KindDict:
		err = s.dictTable(ctx, tg, c)
	case KindDictMeta:
		s.loadTable(c)
	case KindSort:
		s.sortTable(c)
	default:
		return nil, fault.Bugf("carbon: %s is not a dictionary file", tg.Name)
	}
	return s, err
}

func int32s(names ...string) *arrow.Schema {
	fields := make([]arrow.Field, len(names))
	for i, n := range names {
		fields[i] = arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Int32}
	}
	return arrow.NewSchema(fields, nil)
}

func (s *auxiliary) dictTable(ctx context.Context, tg format.Target, c *wire.Cursor) error {
	s.Kind = "dictionary"
	d := dict.ParseDictValues(c)
	loads, metaErr := dict.ReadLoads(ctx, tg.Tree, strings.TrimSuffix(tg.Name, dict.DictExt)+dict.DictMetaExt, s.Limits)
	if metaErr != nil && !errors.Is(metaErr, fault.Corrupt) {
		return metaErr
	}
	damage, rows := c.Err(), len(d.Values)
	if n, wrong := d.Trusted(loads); wrong != nil {
		damage = cmp.Or(damage, fault.Locate(wrong, s.Object.At, true, ""))
		rows = n // excludes the values that .dictmeta contradicts
	}
	var typ arrow.DataType = arrow.BinaryTypes.String
	for _, v := range d.Values {
		if !utf8.Valid(v) {
			typ = arrow.BinaryTypes.Binary
			break
		}
	}
	s.Fields = arrow.NewSchema([]arrow.Field{{Name: "code", Type: arrow.PrimitiveTypes.Int32},
		{Name: "value", Type: typ, Nullable: true},
		{Name: "load", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	load := 0
	s.MakeRows(rows, damage, func(b *array.RecordBuilder, row int) {
		b.Field(0).(*array.Int32Builder).Append(int32(row + 1))
		switch v := d.Values[row]; {
		case string(v) == schema.NullText:
			b.Field(1).AppendNull()
		case typ == arrow.BinaryTypes.Binary:
			b.Field(1).(*array.BinaryBuilder).Append(v)
		default:
			b.Field(1).(*array.StringBuilder).Append(string(v))
		}
		if load = loadOf(loads, row+1, load); load < len(loads) {
			b.Field(2).(*array.Int32Builder).Append(int32(load))
		} else {
			b.Field(2).AppendNull()
		}
	})
	s.fact("column_id", strings.TrimSuffix(path.Base(tg.Name), dict.DictExt))
	s.fact("chunks", len(d.Ends))
	s.fact("values", len(d.Values))
	s.fact("loads", len(loads))
	if k := len(loads); k > 0 && loads[k-1].End < s.Object.At.Len {
		s.fact("unfinished_bytes", s.Object.At.Len-loads[k-1].End)
	}
	return nil
}

// loadOf returns the index of the load that wrote a code, len(loads) if none did. The search starts at index at.
func loadOf(loads []dict.DictLoad, code, at int) int {
	if at >= len(loads) || int64(code) < loads[at].Min {
		at = 0
	}
	for at < len(loads) && int64(code) > loads[at].Max {
		at++
	}
	return at
}

func (s *auxiliary) loadTable(c *wire.Cursor) {
	s.Kind = "dictionary's metadata"
	loads := dict.ParseDictLoads(c)
	s.Fields = arrow.NewSchema([]arrow.Field{{Name: "load", Type: arrow.PrimitiveTypes.Int32},
		{Name: "min_surrogate_key", Type: arrow.PrimitiveTypes.Int64},
		{Name: "max_surrogate_key", Type: arrow.PrimitiveTypes.Int64},
		{Name: "start_offset", Type: arrow.PrimitiveTypes.Int64},
		{Name: "end_offset", Type: arrow.PrimitiveTypes.Int64},
		{Name: "chunk_count", Type: arrow.PrimitiveTypes.Int64}}, nil)
	s.MakeRows(len(loads), c.Err(), func(b *array.RecordBuilder, row int) {
		l := loads[row]
		b.Field(0).(*array.Int32Builder).Append(int32(row))
		for i, v := range []int64{l.Min, l.Max, l.Start, l.End, l.Chunks} {
			b.Field(i + 1).(*array.Int64Builder).Append(v)
		}
	})
	s.fact("loads", len(loads))
}

func (s *auxiliary) sortTable(c *wire.Cursor) {
	s.Kind = "sort index"
	x, err := dict.WholeSortInfo(c)
	rows := len(x.Codes)
	if err != nil {
		rows = min(len(x.Codes), len(x.Ranks))
	}
	s.Fields = int32s("position", "sort_index", "sort_index_inverted")
	s.MakeRows(rows, err, func(b *array.RecordBuilder, row int) {
		for i, v := range []int32{int32(row + 1), x.Codes[row], x.Ranks[row]} {
			b.Field(i).(*array.Int32Builder).Append(v)
		}
	})
	s.fact("codes", len(x.Codes))
}

// DescribeDictionary describes a .dict, a .dictmeta or a .sortindex.
func DescribeDictionary(ctx context.Context, tg format.Target, o format.OpenOptions, trace func(region.Node)) error {
	obj, err := layout.OpenObject(ctx, tg.Tree, tg.Name, o.Limits)
	if err != nil {
		return err
	}
	b, err := obj.Read(ctx, 0, obj.At.Len, "")
	if err != nil {
		return err
	}
	trace(region.Node{Kind: region.Struct, Name: strings.TrimPrefix(path.Ext(tg.Name), "."),
		Value: path.Base(tg.Name), At: obj.At, Inner: -1})
	c := wire.NewCursor(b, obj.At, "").Trace(trace, 1)
	unfinished := false
	switch ByName(tg.Name) {
	case KindDict:
		d := dict.ParseDictValues(c)
		loads, _ := dict.ReadLoads(ctx, tg.Tree, strings.TrimSuffix(tg.Name, dict.DictExt)+dict.DictMetaExt, o.Limits)
		if n, k := len(loads), len(d.Ends); n > 0 && k > 0 && int64(d.Ends[k-1]) >= loads[n-1].End {
			unfinished = c.Err() != nil // carbon.dict.unfinished, which no reader reads
		}
	case KindDictMeta:
		dict.ParseDictLoads(c)
	case KindSort:
		_, err = dict.WholeSortInfo(c)
		return err
	default:
		return fault.Bugf("carbon: %s is not a dictionary file", tg.Name)
	}
	if c.Err() != nil && c.Left() > 0 {
		trace(region.Node{Depth: 1, Kind: region.Gap, Name: "gap", Value: "no structure claims these bytes",
			At: c.SpanOf(c.Pos(), c.Left()), Inner: -1})
	}
	if unfinished {
		return nil
	}
	return c.Err()
}
