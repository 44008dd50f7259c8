package fs

import (
	"context"
	"errors"
	"io"

	"stoa/fault"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// DescribeMetadata traces the parts of a protobuf container, with records of any type. Parts that cannot be read are
// gaps. The first damage is returned as an error at the end.
func DescribeMetadata(ctx context.Context, tree store.Tree, name string, o pbc.Options) error {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return err
	}
	defer src.Close()
	gap := func(err error) {
		if at := pbc.SpanOf(err); at.Len > 0 && at.Object == name {
			o.Trace(region.Node{Depth: o.Depth, Kind: region.Gap, Name: "damaged", Value: err.Error(), At: at,
				Inner: -1})
		}
	}
	r, err := pbc.Open(ctx, src, name, o)
	if r == nil {
		o.Trace(region.Node{Depth: o.Depth, Kind: region.Gap, Name: "damaged",
			At: fault.Span{Object: name, Len: src.Size()}, Inner: -1})
		return err
	}
	first := err
	if err != nil {
		gap(err)
	}
	for {
		rec, err := r.Next(ctx)
		switch {
		case err == io.EOF:
			return first
		case err == nil:
			c := r.Cursor(rec, r.Typ).Within(o.Limits.Memory())
			DescribeRecord(r.Typ, c)
			if err = c.Err(); err == nil {
				continue
			}
			// Next has already traced the record, so there is no gap
		case !errors.As(err, new(*fault.Error)):
			return err
		default:
			gap(err)
		}
		if first == nil {
			first = err
		}
	}
}

// DescribeRecord parses a record of the message type typ for its trace. Fields of unknown types are traced by number.
func DescribeRecord(typ string, c *wire.Cursor) {
	switch typ {
	case "kudu.InstanceMetadataPB":
		new(Instance).Parse(c)
	case "kudu.DirInstanceMetadataPB", "kudu.PathInstanceMetadataPB":
		new(DataDir).Parse(c)
	case "kudu.tablet.TabletSuperBlockPB":
		new(meta.Tablet).Parse(c)
	case "kudu.consensus.ConsensusMetadataPB":
		new(meta.Consensus).Parse(c)
	case "kudu.BlockRecordPB":
		ParseBlockRecord(c)
	default:
		for r := pb.NewReader(c); r.Next(); {
			r.Unknown()
		}
	}
}
