package iceberg

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
	"stoa/internal/roaring"
)

// Ids of the columns of files of position deletes.
const (
	pathID     = 2147483546
	positionID = 2147483545
)

// readDeletes assigns the deleted rows to each data file: position deletes apply to files whose sequence numbers are
// not later than theirs, equality deletes to those whose numbers are lower.
func (op *snapshotReader) readDeletes(ctx context.Context, files []*lake.Input) error {
	if len(op.deletes) == 0 {
		return nil
	}
	p := &positions{op: op, bySeq: map[string][]deletedRow{}}
	var equalities []*equality
	for i := range op.deletes {
		d := &op.deletes[i]
		switch {
		case d.Content == meta.PositionDeletes && d.Format == "PUFFIN":
			if err := p.vector(ctx, d); err != nil {
				return err
			}
		case d.Format != "PARQUET":
			return fault.Unsupportedf(fault.Span{Object: d.name}, "",
				"expected deletes in Parquet or Puffin, found %s", d.Format)
		case d.Content == meta.PositionDeletes:
			if err := p.file(ctx, d); err != nil {
				return err
			}
		case d.Content == meta.EqualityDeletes:
			e, err := op.newEquality(d)
			if err != nil {
				return err
			}
			equalities = append(equalities, e)
		default:
			return fault.Corruptf(fault.Span{Object: d.name}, "content", "expected 0 to 2, found %d", d.Content)
		}
	}
	for i := range op.data {
		p.assign(&op.data[i], files[i])
		op.assignEqualities(equalities, &op.data[i], files[i])
	}
	return nil
}

// deletedRow is a position and the file that deletes it.
type deletedRow struct {
	pos int64
	by  *live
}

// positions are deleted rows, by data file.
type positions struct {
	op      *snapshotReader
	bySeq   map[string][]deletedRow
	vectors map[string][]int64
}

// file reads a file of position deletes.
func (p *positions) file(ctx context.Context, d *live) error {
	ids := func(id int) arrow.Metadata {
		return arrow.NewMetadata([]string{lake.FieldID}, []string{strconv.Itoa(id)})
	}
	sc := arrow.NewSchema([]arrow.Field{{Name: "file_path", Type: arrow.BinaryTypes.String, Metadata: ids(pathID)},
		{Name: "pos", Type: arrow.PrimitiveTypes.Int64, Metadata: ids(positionID)}}, nil)
	t := lake.New(lake.Config{Catalogue: "the manifest", Sized: true, Tree: p.op.tree, Schema: sc,
		Match: lake.ByID(nil),
		Open:  p.op.o, Files: []*lake.Input{{Name: d.name, Rows: d.Rows, Bytes: d.Bytes}}})
	defer t.Close()
	return t.Positions(ctx, func(path string, pos int64) error {
		name, err := p.op.name(path)
		if err != nil {
			return err
		}
		p.bySeq[name] = append(p.bySeq[name], deletedRow{pos, d})
		return p.op.memory.Take(24, fault.Span{Object: d.name}, "deleted rows")
	})
}

// maxVector is the maximum size of a deletion vector in bytes.
const maxVector = 256 << 20

// vectorMagic begins a deletion vector, after its length.
const vectorMagic = 0x6439d3d1

// vector reads a deletion vector: its length, big-endian, the magic, a Roaring bitmap, and a CRC-32 of magic and
// bitmap, big-endian.
func (p *positions) vector(ctx context.Context, d *live) error {
	at := fault.Span{Object: d.name}
	if d.Offset == nil || d.Size == nil || d.ReferencedFile == "" {
		return fault.Corruptf(at, "",
			"expected the offset and size of the deletion vector and its data file; the manifest lacks some")
	}
	at.Off, at.Len = *d.Offset, *d.Size
	if at.Len < 12 || at.Len > maxVector {
		return fault.Corruptf(at, "deletion-vector", "expected 12 to %d bytes, found %d", maxVector, at.Len)
	}
	src, err := p.op.tree.Open(ctx, d.name)
	if err != nil {
		return lake.Missing(err, d.name, "the manifest")
	}
	defer src.Close()
	if src.Size() != d.Bytes {
		return fault.Corruptf(at, "", "expected %d bytes as the manifest says, found %d", d.Bytes, src.Size())
	}
	if at.End() > src.Size() {
		return fault.Corruptf(at, "deletion-vector", "it reaches past the end of the file (%d)", src.Size())
	}
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, src, at, "deletion-vector", b); err != nil {
		return err
	}
	n := len(b)
	if size := binary.BigEndian.Uint32(b); int64(size) != int64(n-8) {
		return fault.Corruptf(at, "deletion-vector.length", "expected %d, found %d", n-8, size)
	}
	if m := binary.LittleEndian.Uint32(b[4:]); m != vectorMagic {
		return fault.Corruptf(at, "deletion-vector.magic", "expected 0x%08x, found 0x%08x", uint32(vectorMagic), m)
	}
	stored, computed := binary.BigEndian.Uint32(b[n-4:]), crc32.ChecksumIEEE(b[4:n-4])
	if stored != computed && !p.op.o.NoVerify {
		return fault.Corruptf(at, "deletion-vector.checksum", "expected 0x%08x, computed 0x%08x", stored, computed)
	}
	rows, err := roaring.Decode(b[8:n-4], max(d.Rows, 0))
	if err != nil {
		return fault.Corruptf(at, "deletion-vector", "%v", err)
	}
	if int64(len(rows)) != d.Rows {
		return fault.Corruptf(at, "deletion-vector", "expected %d deleted rows, found %d", d.Rows, len(rows))
	}
	if err := p.op.memory.Take(int64(8*len(rows)), at, "deleted rows"); err != nil {
		return err
	}
	name, err := p.op.name(d.ReferencedFile)
	if p.vectors == nil {
		p.vectors = map[string][]int64{}
	}
	p.vectors[name] = rows
	return err
}

// deletesOf reports whether deleted positions of a data file that are in d apply to it: those about one data file do,
// others in the partition of the file of deletes.
func (op *snapshotReader) deletesOf(d, f *live) bool {
	if d.ReferencedFile != "" {
		return d.ReferencedFile == f.Path
	}
	low, ok := d.Lower[pathID]
	return ok && bytes.Equal(low, d.Upper[pathID]) || d.spec == f.spec &&
		op.samePartition(f.spec, f.Partition, d.Partition)
}

// assign sets the deleted rows of a data file. A file of deletes applies to data files of its partition, and if it is
// about one data file, to that one: so the specification, and the reference implementation's DeleteFileIndex.
func (p *positions) assign(f *live, in *lake.Input) {
	rows, ok := p.vectors[f.name] // a vector replaces the position deletes of its file
	if !ok {
		var last *live
		applies := false
		for _, l := range p.bySeq[f.name] {
			if l.by != last {
				last, applies = l.by, p.op.deletesOf(l.by, f)
			}
			if l.by.seq >= f.seq && applies {
				rows = append(rows, l.pos)
			}
		}
		slices.Sort(rows)
		rows = slices.Compact(rows)
	}
	if len(rows) > 0 {
		in.Deleted = func(context.Context) ([]int64, error) { return rows, nil }
	}
}
