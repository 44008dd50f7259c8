package table

import (
	"context"
	"fmt"

	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/wire"
)

// auxiliary is an auxiliary file shown as a table: an index, a dictionary, its metadata, a sort index. It was read
// whole; its rows are what could be parsed, and the error of what could not be comes after them.
type auxiliary struct {
	layout.Object
	format.RowSource
}

// openAuxiliary opens an auxiliary file; kind is what its metadata calls it.
func openAuxiliary(ctx context.Context, tg format.Target, l format.Limits,
	kind string) (*auxiliary, *wire.Cursor, error) {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil {
		return nil, nil, err
	}
	o, err := layout.OpenObject(ctx, tg.Tree, tg.Name, l)
	if err != nil {
		return nil, nil, err
	}
	b, err := o.Read(ctx, 0, o.At.Len, "")
	if err != nil {
		return nil, nil, err
	}
	s := &auxiliary{Object: o, RowSource: format.RowSource{At: o.At, Stamp: info.Stamp, Kind: kind}}
	return s, wire.NewCursor(b, o.At, ""), nil
}

func (s *auxiliary) fact(k string, v any) {
	s.Facts = append(s.Facts, format.KeyValue{Key: k, Value: fmt.Sprint(v)})
}
