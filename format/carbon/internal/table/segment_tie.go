package table

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/internal/codec"
	"stoa/pred"
	"stoa/wire"
)

// The index files of a segment name its data files. If they are lost, only the names of the data files identify the
// segment, and a file that was copied over another has the name of that other file. The time in the header does not
// help: it is that of the schema, the same in all segments. Two comparisons remain possible: with min and max in the
// segment file, and whether two files have the same bytes.

// CheckBounds compares the data files of a segment that lost its index files with the min and max of its columns in the
// segment file, which cover all its files. A contradiction is Corrupt.
func (t *Managed) CheckBounds(ctx context.Context, l *status.Load, parts []Part) error {
	known, at, err := t.KeptBounds(ctx, l)
	if err != nil || len(known) == 0 {
		return nil // verify reports the error
	}
	union := map[string]*pred.Bounds{} // by column id; nil: some blocklet has no bounds
	columns := map[string]*schema.Column{}
	whole := t.O.Bucket < 0
	for i := range parts {
		f, err := datafile.OpenFile(ctx, t.Tree, parts[i].Name, t.Opts)
		if err != nil {
			whole = false // reported when it is read
			continue
		}
		for _, c := range KeptColumnsOf(f, known) {
			columns[c.ID] = c
			if err := WithinSegment(l, at, f, c, known[c.ID],
				func(some *pred.Bounds) { widen(union, c.ID, some) }); err != nil {
				return err
			}
		}
	}
	for _, id := range layout.SortedKeys(columns) {
		u, all := union[id], datafile.MinMaxOf(columns[id], known[id], 0)
		if u == nil || all == nil || !whole {
			continue
		}
		a, ok1 := pred.Compare(*u.Min, *all.Min)
		z, ok2 := pred.Compare(*u.Max, *all.Max)
		if ok1 && ok2 && (a != 0 || z != 0) {
			return fault.Corruptf(at, "segmentMetaDataInfo."+id,
				"segment %s, column %s: expected min %v and max %v by the data files, found %v and %v", l.Name,
				columns[id].Name, *u.Min, *u.Max, *all.Min, *all.Max)
		}
	}
	return nil
}

// widen extends the bounds of column id by some, the bounds of one more blocklet; nil if that blocklet has none.
func widen(union map[string]*pred.Bounds, id string, some *pred.Bounds) {
	u, ok := union[id]
	switch {
	case !ok && some != nil:
		union[id] = &pred.Bounds{Min: some.Min, Max: some.Max}
	case u == nil || some == nil:
		union[id] = nil
	default:
		if k, ok := pred.Compare(*some.Min, *u.Min); ok && k < 0 {
			u.Min = some.Min
		}
		if k, ok := pred.Compare(*some.Max, *u.Max); ok && k > 0 {
			u.Max = some.Max
		}
	}
}

// NoteCopies adds a finding for each data file that no index names and that has the same bytes as another data file.
func (t *Managed) NoteCopies(ctx context.Context, list []*Part) error {
	return t.copies(ctx, list, func(p, other *Part) {
		t.note("carbon.file.twice", fault.Span{Object: p.Name, Len: p.bytes}, "it has the same bytes as %s, and "+
			"no index file names it: rows were loaded twice, or one file was copied over another, whose rows are lost",
			other.Name)
	})
}

// copies calls report for each data file that no index names and that has the same bytes as another data file. Only
// files of equal size are read.
func (t *Managed) copies(ctx context.Context, list []*Part, report func(p, other *Part)) error {
	bySize, loose := map[int64][]*Part{}, map[int64]bool{}
	for _, p := range list {
		bySize[p.bytes] = append(bySize[p.bytes], p)
		if p.blocks == nil {
			loose[p.bytes] = true
		}
	}
	if len(loose) == 0 {
		return nil
	}
	for _, p := range list {
		same := bySize[p.bytes]
		if !loose[p.bytes] || len(same) < 2 || same[0] != p {
			continue
		}
		first := map[[sha256.Size]byte]*Part{}
		for _, q := range same {
			sum, err := t.sum(ctx, q.Name)
			if err != nil {
				return err
			}
			other := first[sum]
			switch {
			case other == nil:
				first[sum] = q
			case q.blocks == nil:
				report(q, other)
			case other.blocks == nil:
				report(other, q)
			}
		}
	}
	return nil
}

// sum returns the SHA-256 of a file.
func (t *Managed) sum(ctx context.Context, name string) (out [sha256.Size]byte, err error) {
	src, err := t.Tree.Open(ctx, name)
	if err != nil {
		return out, err
	}
	defer src.Close()
	h := sha256.New()
	b := make([]byte, 256<<10)
	for off := int64(0); off < src.Size(); off += int64(len(b)) {
		b = b[:min(int64(len(b)), src.Size()-off)]
		at := fault.Span{Object: name, Off: off, Len: int64(len(b))}
		if err := format.ReadFull(ctx, src, at, "", b); err != nil {
			return out, err
		}
		h.Write(b)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// KeptBounds returns min and max of columns in the segment file of a load, by column id, and the place of that file.
// The bounds are nil if the file has none (partitioned tables, earlier releases) or cannot be read. Metadata that
// cannot be parsed is Corrupt.
func (t *Managed) KeptBounds(ctx context.Context, l *status.Load) (map[string]*layout.MinMax, fault.Span, error) {
	at := fault.Span{Object: t.segmentFileOf(l)}
	var s status.SegmentFile
	if l.Segment == "" || !l.Counts() ||
		status.ReadJSON(ctx, t.Tree, at.Object, t.Opts.Limits.WithDefaults(), &s) != nil || s.Metadata == "" {
		return nil, at, nil // Folders reports a segment file that cannot be read
	}
	known, err := parseSegmentBounds(s.Metadata, at, t.Opts.Limits.WithDefaults().Apart())
	return known, at, err
}

// KeptColumnsOf returns the columns of a file whose bounds can be compared with those in known.
func KeptColumnsOf(f *datafile.DataFile, known map[string]*layout.MinMax) (out []*schema.Column) {
	if f.Version < 3 || f.Stream != nil {
		return nil
	}
	for _, r := range f.Roots {
		if known[r.ID] != nil && !r.Type.Complex() && !schema.HasGlobalCodes(r) {
			out = append(out, r)
		}
	}
	return out
}

// WithinSegment returns Corrupt, with the place at, if the bounds of column c in a blocklet of f are not within b, the
// bounds of the segment. seen, if not nil, is called with the bounds of each blocklet, nil if a blocklet has none.
func WithinSegment(l *status.Load, at fault.Span, f *datafile.DataFile, c *schema.Column, b *layout.MinMax,
	seen func(some *pred.Bounds)) error {
	path := "segmentMetaDataInfo." + c.ID
	all := datafile.MinMaxOf(c, b, 0)
	for g := range f.Footer.Index {
		some := datafile.MinMaxOf(c, f.Footer.Index[g].MinMax, c.Chunk)
		if seen != nil {
			seen(some)
		}
		if some == nil {
			continue
		}
		if all == nil {
			if a, z, yes := datafile.Crossed(c, b, 0); yes {
				return fault.Corruptf(at, path, "segment %s: min %v is greater than max %v", l.Name, a, z)
			}
			continue // the segment has no bounds of the column
		}
		below, ok1 := pred.Compare(*some.Min, *all.Min)
		above, ok2 := pred.Compare(*some.Max, *all.Max)
		if ok1 && below < 0 || ok2 && above > 0 {
			return fault.Corruptf(at, path,
				"segment %s: min %v and max %v do not include blocklet %d of %s, with %v to %v", l.Name, *all.Min,
				*all.Max, g, f.At.Object, *some.Min, *some.Max)
		}
	}
	return nil
}

// parseSegmentBounds parses segmentMetaDataInfo: a serialized Java object, compressed by gzip, in base64. The result is
// by column id.
func parseSegmentBounds(text string, at fault.Span, l format.Limits) (map[string]*layout.MinMax, error) {
	unreadable := func(format string, args ...any) (map[string]*layout.MinMax, error) {
		return nil, fault.Corruptf(at, "segmentMetaDataInfo", format, args...)
	}
	zipped, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return unreadable("%v", err)
	}
	b, err := codec.Expand("gzip", zipped, l.Metadata, func(n int) []byte { return make([]byte, n) })
	if err != nil {
		var e *fault.Error
		if errors.As(err, &e) && e.Class == fault.Limit {
			return nil, fault.Limitf(at, "segmentMetaDataInfo", "%s (metadata limit)", e.Reason)
		}
		return unreadable("%v", err)
	}
	c := wire.NewCursor(b, fault.Span{Len: int64(len(b))}, "").Within(l.Memory())
	o := layout.ParseJavaObject(layout.BigEndian{Cursor: c})
	if e := (*fault.Error)(nil); errors.As(c.Err(), &e) && e.Class == fault.Limit {
		return nil, fault.Limitf(at, "segmentMetaDataInfo", "%s", e.Reason)
	}
	if c.Err() != nil {
		return unreadable("%v", c.Err())
	}
	all, ok := o.Fields["segmentColumnMetaDataInfoMap"].(*layout.JavaValues)
	if !ok || o.Class != segmentClass || len(all.Own)%2 != 0 {
		return unreadable("expected %s with a map of columns, found %s", segmentClass, o.Class)
	}
	out := map[string]*layout.MinMax{}
	for i := 0; i < len(all.Own); i += 2 {
		id, ok1 := all.Own[i].(string)
		one, ok2 := all.Own[i+1].(*layout.JavaValues)
		if !ok1 || !ok2 {
			return unreadable("entry %d: expected a column id and its bounds", i/2)
		}
		lo, _ := one.Fields["columnMinValue"].([]byte)
		hi, _ := one.Fields["columnMaxValue"].([]byte)
		out[id] = &layout.MinMax{Min: [][]byte{bytes.Clone(lo)}, Max: [][]byte{bytes.Clone(hi)}}
	}
	return out, nil
}

// segmentClass is the class of segmentMetaDataInfo.
const segmentClass = "org.apache.carbondata.core.segmentmeta.SegmentMetaDataInfo"
