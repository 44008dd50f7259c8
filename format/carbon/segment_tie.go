package carbon

import (
	"context"
	"crypto/sha256"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
)

// The index files of a segment say which data files are its own. Where they are lost only the files' names tell, and a file that was copied over another one keeps that one's
// name; the time in its header is that of the schema, which is the same in all segments. What is left are the least and the greatest values that the segment file keeps, and that
// no writer makes two files of the same bytes but of the same rows.

// tied holds the data files of a segment without its index files against the least and greatest values that its segment file keeps: they are those of all its files.
func (t *managed) tied(ctx context.Context, l *load, parts []part) error {
	known, at, err := t.keptBounds(ctx, l)
	if err != nil || len(known) == 0 {
		return nil // verify tells
	}
	union := map[string]*pred.Bounds{} // by the ids of columns; nil: not kept of all blocklets
	columns := map[string]*column{}
	whole := t.o.bucket < 0
	for i := range parts {
		f, err := openFile(ctx, t.tree, parts[i].name, t.opts)
		if err != nil {
			whole = false // told when it is read
			continue
		}
		for _, c := range f.keptColumns(known) {
			columns[c.id] = c
			if err := l.within(at, f, c, known[c.id], func(some *pred.Bounds) { widen(union, c.id, some) }); err != nil {
				return err
			}
		}
	}
	for _, id := range sorted(columns) {
		u, all := union[id], columns[id].minMax(known[id], 0)
		if u == nil || all == nil || !whole {
			continue
		}
		a, ok1 := pred.Compare(*u.Min, *all.Min)
		z, ok2 := pred.Compare(*u.Max, *all.Max)
		if ok1 && ok2 && (a != 0 || z != 0) {
			return fault.Corruptf(at, "segmentMetaDataInfo."+id, "segment %s: values of column %s from %v to %v, its files have them from %v to %v", l.Name, columns[id].name, *all.Min, *all.Max, *u.Min, *u.Max)
		}
	}
	return nil
}

// widen makes the bounds of a column those of one blocklet more.
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

// untied notes of each data file of which no index knows that another one has the same bytes.
func (t *managed) untied(ctx context.Context, list []*part) error {
	return t.twins(ctx, list, func(p, other *part) {
		t.note("carbon.file.twice", fault.Span{Object: p.name, Len: p.bytes}, "it has the same bytes as %s, and no index file says that it belongs here: rows were loaded twice, or one file was copied over another, whose rows are lost", other.name)
	})
}

// twins calls tell with each data file of which no index knows, and with another one that has the same bytes. Only files of one size are read.
func (t *managed) twins(ctx context.Context, list []*part, tell func(p, other *part)) error {
	bySize, loose := map[int64][]*part{}, map[int64]bool{}
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
		first := map[[sha256.Size]byte]*part{}
		for _, q := range same {
			sum, err := t.sum(ctx, q.name)
			if err != nil {
				return err
			}
			other := first[sum]
			switch {
			case other == nil:
				first[sum] = q
			case q.blocks == nil:
				tell(q, other)
			case other.blocks == nil:
				tell(other, q)
			}
		}
	}
	return nil
}

// sum is a digest of the bytes of a file.
func (t *managed) sum(ctx context.Context, name string) (out [sha256.Size]byte, err error) {
	src, err := t.tree.Open(ctx, name)
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
