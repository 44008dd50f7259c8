package kudufs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/format/kudu/internal/meta"
)

// divide returns the partitioning and the tablets of a table: by hash of the key, if buckets is not 0; else as t says;
// else one tablet.
func divide(t kudu.TableMeta, s *meta.Schema, id string, buckets int32) (p meta.PartitionSchema,
	tablets []kudu.TabletMeta, err error) {
	ids := func(names []string) (out []int32, err error) {
		for _, n := range names {
			i := s.FindName(n)
			if i < 0 || !s.Columns[i].Key {
				return nil, fault.Invalidf("the table is partitioned by column %q, which is not in its primary key", n)
			}
			out = append(out, s.Columns[i].ID)
		}
		return out, nil
	}
	p.Stored = true
	switch {
	case buckets > 0:
		d := meta.HashDimension{Buckets: buckets}
		for i := range s.NumKeys {
			d.Columns = append(d.Columns, s.Columns[i].ID)
		}
		p.Hash = []meta.HashDimension{d}
		return p, hashTablets(id, buckets), nil
	case len(t.Tablets) == 0:
		for i := range s.NumKeys {
			p.Range = append(p.Range, s.Columns[i].ID)
		}
		return p, []kudu.TabletMeta{{ID: madeID(id, "tablet")}}, nil
	}
	dims := func(from []kudu.HashMeta) (out []meta.HashDimension, err error) {
		for _, h := range from {
			d := meta.HashDimension{Buckets: h.Buckets, Seed: h.Seed}
			if d.Columns, err = ids(h.Columns); err != nil {
				return nil, err
			}
			slices.Sort(d.Columns)
			out = append(out, d)
		}
		return out, nil
	}
	if p.Range, err = ids(t.Range); err != nil {
		return p, nil, err
	}
	if p.Hash, err = dims(t.Hash); err != nil {
		return p, nil, err
	}
	for _, r := range t.Custom {
		x := meta.RangeHash{}
		if x.Hash, err = dims(r.Hash); err != nil {
			return p, nil, err
		}
		if x.Lower, err = rangeKey(s, p.Range, r.Lower); err != nil {
			return p, nil, err
		}
		if x.Upper, err = rangeKey(s, p.Range, r.Upper); err != nil {
			return p, nil, err
		}
		p.Custom = append(p.Custom, x)
	}
	return p, t.Tablets, nil
}

// hashTablets are the tablets of a table with hash buckets alone. As in Kudu, the first has no start key, and the last
// no end key.
func hashTablets(id string, buckets int32) (out []kudu.TabletMeta) {
	for b := range buckets {
		t := kudu.TabletMeta{ID: madeID(id, "bucket", fmt.Sprint(b)), Buckets: []int32{b}}
		if b > 0 {
			t.Start = binary.BigEndian.AppendUint32(nil, uint32(b))
		}
		if b < buckets-1 {
			t.End = binary.BigEndian.AppendUint32(nil, uint32(b+1))
		}
		out = append(out, t)
	}
	return out
}

// rangeKey encodes a bound's texts; no texts are unbounded.
func rangeKey(s *meta.Schema, columns []int32, texts []string) (key []byte, err error) {
	if len(texts) > len(columns) {
		return nil, fault.Invalidf("a bound of a partition has %s for %s", fault.Count(len(texts), "value"),
			fault.Count(len(columns), "column"))
	}
	for k, text := range texts {
		c := &s.Columns[s.Find(columns[k])]
		v, err := c.Value(text)
		if err != nil {
			return nil, err
		}
		if key, err = cfile.AppendKey(key, c.Type, v, k == len(columns)-1); err != nil {
			return nil, err
		}
	}
	return key, nil
}

// router finds the tablets of rows.
type router struct {
	schema  *meta.Schema
	parts   *meta.PartitionSchema
	lowers  [][]byte // of all ranges, ascending
	uppers  [][]byte
	tablets map[string]int // by lower bound and buckets
	buf     []byte
}

func newRouter(s *meta.Schema, p *meta.PartitionSchema, tablets []kudu.TabletMeta) (*router, error) {
	r := &router{schema: s, parts: p, tablets: map[string]int{}}
	for i, t := range tablets {
		part := meta.Partition{Buckets: t.Buckets, Start: t.Start, End: t.End}
		lower, upper := part.Lower(), part.Upper()
		if n := len(p.HashOf(lower)); n != len(t.Buckets) {
			return nil, fault.Invalidf("tablet %s has %d buckets, its range has %d hash dimensions", t.ID,
				len(t.Buckets), n)
		}
		k := tabletKey(lower, t.Buckets)
		if _, ok := r.tablets[k]; ok {
			return nil, fault.Invalidf("two tablets, %s and another, have the same part of the table", t.ID)
		}
		r.tablets[k] = i
		at, ok := slices.BinarySearchFunc(r.lowers, lower, bytes.Compare)
		if !ok {
			r.lowers, r.uppers = slices.Insert(r.lowers, at, lower), slices.Insert(r.uppers, at, upper)
		}
	}
	return r, nil
}

func tabletKey(lower []byte, buckets []int32) string {
	return fmt.Sprint(buckets) + string(lower)
}

// tablet is the index of the tablet of a row with these key cells.
func (r *router) tablet(cells [][]byte) (int, error) {
	at := len(r.lowers) - 1
	if len(r.parts.Range) > 0 && (len(r.lowers) > 1 || len(r.lowers[0]) > 0 || len(r.uppers[0]) > 0) {
		key, err := r.encode(r.parts.Range, cells)
		if err != nil {
			return 0, err
		}
		i, ok := slices.BinarySearchFunc(r.lowers, key, bytes.Compare)
		if at = i; !ok {
			at = i - 1
		}
		if at < 0 || len(r.uppers[at]) > 0 && bytes.Compare(key, r.uppers[at]) >= 0 {
			return 0, fault.Invalidf("the row with key %s is in no range of the table", r.text(cells))
		}
	}
	dims := r.parts.HashOf(r.lowers[at])
	buckets := make([]int32, len(dims))
	for i := range dims {
		key, err := r.encode(dims[i].Columns, cells)
		if err != nil {
			return 0, err
		}
		buckets[i] = dims[i].Bucket(key)
	}
	i, ok := r.tablets[tabletKey(r.lowers[at], buckets)]
	if !ok {
		return 0, fault.Invalidf("the row with key %s is in none of the table's tablets: its buckets are %v",
			r.text(cells), buckets)
	}
	return i, nil
}

// encode encodes the key of some columns, valid until the next call.
func (r *router) encode(ids []int32, cells [][]byte) ([]byte, error) {
	r.buf = r.buf[:0]
	for k, id := range ids {
		i := r.schema.Find(id)
		var err error
		if r.buf, err = cfile.AppendKey(r.buf, r.schema.Columns[i].Type, cells[i], k == len(ids)-1); err != nil {
			return nil, err
		}
	}
	return r.buf, nil
}

// text writes a key for messages.
func (r *router) text(cells [][]byte) string {
	var out []string
	for i, v := range cells {
		out = append(out, meta.ValueText(r.schema.Columns[i].Type, v))
	}
	return "(" + strings.Join(out, ", ") + ")"
}
