package kudu

import (
	"context"
	"iter"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/table"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/describe"
	"stoa/region"
)

// WALFormat is format "kudu-wal": one segment of a write-ahead log, on its own. It can be described and verified. Its
// rows are read with the directory that it belongs to, because only the rest of the tablet tells which of them were
// flushed.
var WALFormat = format.Format{
	Family:   "kudu",
	Name:     "kudu-wal",
	Title:    "Apache Kudu write-ahead log: one segment (its rows are read with its directory)",
	Probe:    probeWAL,
	List:     listWAL,
	Describe: describeSegment,
	Verify:   verifySegment,
	Codes:    codes.OfLogs,
}

func probeWAL(ctx context.Context, tg format.Target) (format.Match, error) {
	return probeMagic(ctx, tg, wal.Magic)
}

func listWAL(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		src, err := tg.Tree.Open(ctx, tg.Name)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		defer src.Close()
		r, _, err := wal.Open(ctx, src, tg.Name, pbc.Options{Limits: tg.Limits}, cfile.LZ4)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		e := format.Entry{Kind: "log segment", Rows: -1, Bytes: src.Size()}
		e.Meta = append(e.Meta, table.Fact("tablet_id", "%s", r.Head.TabletID),
			table.Fact("sequence_number", "%d", r.Head.Sequence),
			table.Fact("schema_version", "%d", r.Head.SchemaVersion),
			table.Fact("compression_codec", "%s", r.Codec.Name))
		if f := r.Foot; f != nil {
			e.Meta = append(e.Meta, table.Fact("entries", "%d", f.Entries),
				table.Fact("operations", "%d to %d", f.MinIndex, f.MaxIndex),
				table.Fact("closed", "%s", time.UnixMicro(f.Closed).UTC().Format(time.RFC3339Nano)))
		}
		yield(e, nil)
	}
}

// noOptions returns an Invalid error if there are any options.
func noOptions(name string, opts map[string]string) error {
	for k := range opts {
		return fault.Invalidf("%s: there is no option %q for reading", name, k)
	}
	return nil
}

func describeSegment(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return describe.Stream(ctx, o.Pages, func(out *describe.Outline) error {
		if err := noOptions("kudu-wal", o.Opts); err != nil {
			return err
		}
		return wal.Describe(ctx, tg.Tree, tg.Name,
			pbc.Options{Limits: o.Limits, NoVerify: o.NoVerify, Trace: out.Emit})
	})
}

// verifySegment reads all entries.
func verifySegment(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		x := &wal.Replayer{T: &meta.Tablet{ID: tg.Name}, Out: &wal.Logged{}, Counts: map[string]int{}}
		err := noOptions("kudu-wal", o.Opts)
		if err == nil {
			err = x.CheckSegment(ctx, tg, pbc.Options{Limits: o.Limits, NoVerify: o.NoVerify})
		}
		if err != nil {
			x.Fault("kudu.wal.damaged", err)
		}
		for _, f := range x.Out.Findings {
			if !yield(f) {
				return
			}
		}
	}
}
