package kudu

import (
	"context"
	"errors"
	"io"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/table"
	"stoa/internal/describe"
	"stoa/region"
)

// MetadataFormat is format "kudu-metadata": one protobuf container on its own: a superblock, consensus metadata, an
// instance, or the metadata of a log container. It can be described and verified; it has no rows.
var MetadataFormat = format.Format{
	Family:   "kudu",
	Magics:   []format.Magic{{Off: 0, Bytes: "kuducntr", Name: "a Kudu protobuf container (metadata, not data)"}},
	Name:     "kudu-metadata",
	Title:    "Apache Kudu metadata: one protobuf container (superblock, instance, consensus or container metadata)",
	Probe:    probePBC,
	List:     listPBC,
	Describe: describeOnePBC,
	Verify:   verifyPBC,
	Codes:    codes.OfMetadata,

	Described: isContainer,
}

func probePBC(ctx context.Context, tg format.Target) (format.Match, error) {
	return probeMagic(ctx, tg, pbc.Magic)
}

// probeMagic is format.Certain for a file that begins with magic.
func probeMagic(ctx context.Context, tg format.Target, magic string) (format.Match, error) {
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return format.No, nil // a directory
	}
	defer src.Close()
	b := make([]byte, len(magic))
	if _, err := src.ReadAt(ctx, b, 0); err != nil && err != io.EOF {
		return format.No, err
	}
	if string(b) != magic {
		return format.No, nil
	}
	return format.Certain, nil
}

func listPBC(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		src, err := tg.Tree.Open(ctx, tg.Name)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		defer src.Close()
		r, err := pbc.Open(ctx, src, tg.Name, pbc.Options{Limits: tg.Limits})
		if r == nil {
			yield(format.Entry{}, err)
			return
		}
		e := format.Entry{Kind: "metadata", Rows: -1, Bytes: src.Size()}
		e.Meta = append(e.Meta, table.Fact("version", "%d", r.Version), table.Fact("type", "%s", r.Typ))
		yield(e, nil)
	}
}

func describeOnePBC(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return describe.Stream(ctx, o.Pages, func(out *describe.Outline) error {
		if err := noOptions("kudu-metadata", o.Opts); err != nil {
			return err
		}
		if isContainer(tg.Name) {
			return (&describer{Outline: out, tree: tg.Tree, o: o.OpenOptions}).oneContainer(tg.Name)
		}
		return fs.DescribeMetadata(ctx, tg.Tree, tg.Name,
			pbc.Options{Limits: o.Limits, NoVerify: o.NoVerify, Trace: out.Emit})
	})
}

// verifyPBC parses all records, by the type in the supplementary header.
func verifyPBC(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		err := noOptions("kudu-metadata", o.Opts)
		if err == nil {
			err = checkPBC(ctx, tg, pbc.Options{Limits: o.Limits, NoVerify: o.NoVerify},
				func(err error) bool { return yield(codes.Finding("kudu.metadata.damaged", err, tg.Name)) })
		}
		if err != nil {
			yield(codes.Finding("kudu.read", err, tg.Name))
		}
	}
}

// checkPBC calls met for each damage until met returns false. It returns other errors.
func checkPBC(ctx context.Context, tg format.Target, o pbc.Options, met func(error) bool) error {
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return err
	}
	defer src.Close()
	r, err := pbc.Open(ctx, src, tg.Name, o)
	if err != nil && (!errors.As(err, new(*fault.Error)) || !met(err) || r == nil) {
		return ofSystem(err)
	}
	for n := 0; ; n++ {
		rec, err := r.Next(ctx)
		if err == io.EOF {
			if n == 0 && r.Typ != "kudu.BlockRecordPB" { // the metadata of a new log container has no records
				met(fault.Corruptf(r.Span(r.Size, 0), "", "the file ends before its record"))
			}
			return ctx.Err()
		}
		if err == nil {
			c := r.Cursor(rec, r.Typ).Within(o.Limits.Memory())
			fs.DescribeRecord(r.Typ, c)
			err = c.Err()
		}
		if err != nil && (!errors.As(err, new(*fault.Error)) || !met(err)) {
			return ofSystem(err)
		}
	}
}

// ofSystem returns err, or nil if err is a fault.Error, which has been reported.
func ofSystem(err error) error {
	if errors.As(err, new(*fault.Error)) {
		return nil
	}
	return err
}
