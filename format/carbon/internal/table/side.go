package table

import (
	"context"
	"fmt"

	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/wire"
)

// side is a file beside the data, shown as a table: an index, a dictionary, its metadata, a sort index. It was read
// whole; what could be understood is rows, and damage comes after them.
type side struct {
	layout.Object
	format.RowSource
}

// openSide opens the file of a side table.
func openSide(ctx context.Context, tg format.Target, l format.Limits, kind string) (*side, *wire.Cursor, error) {
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
	s := &side{Object: o, RowSource: format.RowSource{At: o.At, Stamp: info.Stamp, Kind: kind}}
	return s, wire.NewCursor(b, o.At, ""), nil
}

func (s *side) fact(k string, v any) {
	s.Facts = append(s.Facts, format.KeyValue{Key: k, Value: fmt.Sprint(v)})
}
