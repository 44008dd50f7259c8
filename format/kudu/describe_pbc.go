package kudu

import (
	"context"
	"errors"
	"io"
	"stoa/fault"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// describePBC tells the parts of a protobuf container: of every record, whatever it is of. Damage is given as an error, last;
// parts that cannot be read are gaps.
func describePBC(ctx context.Context, tree store.Tree, name string, o pbcOptions) error {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return err
	}
	defer src.Close()
	gap := func(err error) {
		if at := spanOf(err); at.Len > 0 && at.Object == name {
			o.trace(region.Node{Depth: o.depth, Kind: region.Gap, Name: "damaged", Value: err.Error(), At: at, Inner: -1})
		}
	}
	r, err := openPBC(ctx, src, name, o)
	if r == nil {
		o.trace(region.Node{Depth: o.depth, Kind: region.Gap, Name: "damaged", At: fault.Span{Object: name, Len: src.Size()}, Inner: -1})
		return err
	}
	first := err
	if err != nil {
		gap(err)
	}
	for {
		rec, err := r.next(ctx)
		switch {
		case err == io.EOF:
			return first
		case err == nil:
			c := r.cursor(rec, r.typ)
			describeRecord(r.typ, c)
			if err = c.Err(); err == nil {
				continue
			}
			// its frame is whole, and was told
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

// describeRecord parses a record for its trace.
func describeRecord(typ string, c *wire.Cursor) {
	switch typ {
	case "kudu.InstanceMetadataPB":
		new(Instance).parse(c)
	case "kudu.DirInstanceMetadataPB", "kudu.PathInstanceMetadataPB":
		new(DataDir).parse(c)
	case "kudu.tablet.TabletSuperBlockPB":
		new(Tablet).parse(c)
	case "kudu.consensus.ConsensusMetadataPB":
		new(Consensus).parse(c)
	case "kudu.BlockRecordPB":
		parseBlockRecord(c)
	default:
		for r := pb.NewReader(c); r.Next(); {
			r.Unknown()
		}
	}
}
