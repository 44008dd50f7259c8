package table

import (
	"context"
	"fmt"

	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/wire"
)

// auxiliary presents an auxiliary file as a table: an index, a dictionary, its metadata, or a sort index. The file has
// been read completely. The rows are the entries that could be parsed; the error for the rest follows them.
type auxiliary struct {
	layout.Object
	format.RowSource
}

// openAuxiliary opens an auxiliary file; kind is its name in the table's metadata.
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
