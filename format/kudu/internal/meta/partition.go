package meta

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"stoa/format/cfile"
	"stoa/internal/pb"
	"stoa/wire"
)

// PartitionSchema is a PartitionSchemaPB: how a table is divided into tablets.
type PartitionSchema struct {
	Hash   []HashDimension // of every range that is not in Custom
	Range  []int32         // ids of the range columns; empty: no ranges
	Custom []RangeHash     // ranges with hash dimensions of their own

	Stored     bool // the superblock has one
	hasRange   bool
	rangeRefs  []columnRef
	hashRefs   [][]columnRef
	customRefs [][][]columnRef
	customOps  []rowOps
}

// HashDimension is a HashBucketSchemaPB.
type HashDimension struct {
	Columns []int32 // ids, ascending: this is the order in which values are hashed
	Buckets int32
	Seed    uint32
}

// RangeHash is a range with its own hash dimensions. Bounds are encoded; empty is unbounded.
type RangeHash struct {
	Lower, Upper []byte
	Hash         []HashDimension
}

// Partition is a PartitionPB: one tablet's part of the table.
type Partition struct {
	Buckets    []int32 // one for each hash dimension
	Start, End []byte  // encoded partition keys: a big-endian u32 for each bucket, then the range key
}

// columnRef names a column by its id, or by its name if id is -1.
type columnRef struct {
	id   int32
	name string
}

// rowOps is a RowOperationsPB.
type rowOps struct{ rows, indirect []byte }

// Lower and Upper are the encoded bounds of the range; empty is unbounded.
func (p *Partition) Lower() []byte { return rangePart(p.Start, len(p.Buckets)) }
func (p *Partition) Upper() []byte { return rangePart(p.End, len(p.Buckets)) }

// rangePart is a partition key without its buckets.
func rangePart(key []byte, buckets int) []byte {
	if n := 4 * buckets; len(key) > n {
		return key[n:]
	}
	return nil
}

// ParsePartition reads a PartitionPB.
func ParsePartition(c *wire.Cursor) (p Partition) {
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			if r.Wire() == pb.Varint {
				p.Buckets = append(p.Buckets, r.Int32("hash_buckets"))
				continue
			}
			off := c.Pos()
			packed := r.Bytes("hash_buckets")
			for len(packed) > 0 {
				v, n := binary.Uvarint(packed)
				if n <= 0 || v > 1<<31-1 {
					c.Fail(off, c.Pos()-off, "hash_buckets", "not a list of bucket numbers")
					break
				}
				p.Buckets = append(p.Buckets, int32(v))
				packed = packed[n:]
			}
		case 2:
			p.Start = r.Bytes("partition_key_start")
		case 3:
			p.End = r.Bytes("partition_key_end")
		default:
			r.Unknown()
		}
	}
	return p
}

// ParsePartitionSchema reads a PartitionSchemaPB. Its columns and the bounds of Custom are set by resolve, which needs
// the table's schema.
func ParsePartitionSchema(c *wire.Cursor) (s PartitionSchema) {
	s.Stored = true
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			m := r.Message("hash_schema[" + strconv.Itoa(len(s.Hash)) + "]")
			d, refs := parseHashDimension(m)
			r.Join(m)
			s.Hash, s.hashRefs = append(s.Hash, d), append(s.hashRefs, refs)
		case 2:
			s.hasRange = true
			m := r.Message("range_schema")
			for r := pb.NewReader(m); r.Next(); {
				if r.Field() == 1 {
					s.rangeRefs = append(s.rangeRefs, parseColumnRef(r, len(s.rangeRefs)))
				} else {
					r.Unknown()
				}
			}
			r.Join(m)
		case 5:
			m := r.Message("custom_hash_schema_ranges[" + strconv.Itoa(len(s.Custom)) + "]")
			x, refs, ops := parseRangeHash(m)
			r.Join(m)
			s.Custom, s.customRefs, s.customOps = append(s.Custom, x), append(s.customRefs, refs),
				append(s.customOps, ops)
		default:
			r.Unknown()
		}
	}
	return s
}

// parseHashDimension reads a HashBucketSchemaPB.
func parseHashDimension(c *wire.Cursor) (d HashDimension, refs []columnRef) {
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			refs = append(refs, parseColumnRef(r, len(refs)))
		case 2:
			d.Buckets = r.Int32("num_buckets")
		case 3:
			d.Seed = r.Uint32("seed")
		default:
			r.Unknown()
		}
	}
	if c.Err() == nil && d.Buckets < 1 {
		c.Fail(0, c.Pos(), "num_buckets", "%d buckets", d.Buckets)
	}
	return d, refs
}

// parseColumnRef reads a ColumnIdentifierPB.
func parseColumnRef(r *pb.Reader, n int) (ref columnRef) {
	ref.id = -1
	m := r.Message("columns[" + strconv.Itoa(n) + "]")
	for r := pb.NewReader(m); r.Next(); {
		switch r.Field() {
		case 1:
			ref.id = r.Int32("id")
		case 2:
			ref.name = r.String("name")
		default:
			r.Unknown()
		}
	}
	r.Join(m)
	return ref
}

// parseRangeHash reads a RangeWithHashSchemaPB.
func parseRangeHash(c *wire.Cursor) (x RangeHash, refs [][]columnRef, ops rowOps) {
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			m := r.Message("range_bounds")
			for r := pb.NewReader(m); r.Next(); {
				switch r.Field() {
				case 2:
					ops.rows = r.Bytes("rows")
				case 3:
					ops.indirect = r.Bytes("indirect_data")
				default:
					r.Unknown()
				}
			}
			r.Join(m)
		case 2:
			m := r.Message("hash_schema[" + strconv.Itoa(len(x.Hash)) + "]")
			d, ids := parseHashDimension(m)
			r.Join(m)
			x.Hash, refs = append(x.Hash, d), append(refs, ids)
		default:
			r.Unknown()
		}
	}
	return x, refs, ops
}

// resolve finds the columns that the partition schema names, and the bounds of Custom. It returns what is wrong; "" if
// nothing is.
func (s *PartitionSchema) resolve(sc *Schema) string {
	if !s.Stored {
		return ""
	}
	find := func(refs []columnRef) (ids []int32, why string) {
		for _, ref := range refs {
			i := sc.Find(ref.id)
			if ref.id < 0 {
				i = sc.FindName(ref.name)
			}
			if i < 0 || sc.Columns[i].ID < 0 {
				return nil, fmt.Sprintf("no column %d %q", ref.id, ref.name)
			}
			ids = append(ids, sc.Columns[i].ID)
		}
		return ids, ""
	}
	var why string
	for i, refs := range s.hashRefs {
		if s.Hash[i].Columns, why = find(refs); why != "" {
			return why
		}
		slices.Sort(s.Hash[i].Columns)
	}
	if s.Range, why = find(s.rangeRefs); why != "" {
		return why
	}
	if !s.hasRange {
		for i := range sc.NumKeys {
			if !sc.Columns[i].AutoIncrement && sc.Columns[i].ID >= 0 {
				s.Range = append(s.Range, sc.Columns[i].ID)
			}
		}
	}
	for _, id := range s.Range {
		if c := sc.Columns[sc.Find(id)]; c.Array || c.Type.Width() == 0 && !c.Type.IsBinary() {
			return fmt.Sprintf("a range column of type %s", c.TypeText())
		}
	}
	for k := range s.Custom {
		for i, refs := range s.customRefs[k] {
			if s.Custom[k].Hash[i].Columns, why = find(refs); why != "" {
				return why
			}
			slices.Sort(s.Custom[k].Hash[i].Columns)
		}
		if s.Custom[k].Lower, s.Custom[k].Upper, why = s.bounds(sc, s.customOps[k]); why != "" {
			return fmt.Sprintf("custom_hash_schema_ranges[%d]: %s", k, why)
		}
	}
	s.hashRefs, s.rangeRefs, s.customRefs, s.customOps = nil, nil, nil, nil
	return ""
}

// RowOperationsPB.Type of a range's bounds.
const (
	opLower = 6 // RANGE_LOWER_BOUND
	opUpper = 7 // RANGE_UPPER_BOUND
)

// bounds reads the two row operations of a range: its lower and its upper bound.
//
//	u8 type, bitmap of the columns that are set, [bitmap of nulls, if the schema has nullable columns], values of the
//	columns that are set and not null: fixed-width ones little-endian, others as u64 offset into indirect_data and
//	u64 length
func (s *PartitionSchema) bounds(sc *Schema, ops rowOps) (lower, upper []byte, why string) {
	rest := ops.rows
	for _, want := range []byte{opLower, opUpper} {
		if len(rest) == 0 {
			return nil, nil, "a bound is missing"
		}
		if rest[0] != want {
			return nil, nil, fmt.Sprintf("expected a row operation of type %d, found %d", want, rest[0])
		}
		values, left, why := rowOperation(sc, rest[1:], ops.indirect)
		if why != "" {
			return nil, nil, why
		}
		rest = left
		key, why := s.rangeKey(sc, values)
		if why != "" {
			return nil, nil, why
		}
		if want == opLower {
			lower = key
		} else {
			upper = key
		}
	}
	if len(rest) > 0 {
		return nil, nil, fmt.Sprintf("%d bytes are left over", len(rest))
	}
	return lower, upper, ""
}

// rowOperation reads the values of a row operation, by column; nil: not set, or null.
func rowOperation(sc *Schema, b, indirect []byte) (values [][]byte, rest []byte, why string) {
	n := (len(sc.Columns) + 7) / 8
	nullable := slices.ContainsFunc(sc.Columns, func(c Column) bool { return c.Nullable })
	maps := n
	if nullable {
		maps = 2 * n
	}
	if len(b) < maps {
		return nil, nil, "its bitmaps are truncated"
	}
	set, nulls := b[:n], b[n:maps]
	b = b[maps:]
	values = make([][]byte, len(sc.Columns))
	bit := func(m []byte, i int) bool { return len(m) > 0 && m[i/8]>>(i%8)&1 == 1 }
	for i := range sc.Columns {
		if !bit(set, i) || nullable && bit(nulls, i) {
			continue
		}
		t := sc.Columns[i].Type
		w := StoredWidth(t)
		if t.IsBinary() || sc.Columns[i].Array {
			w = 16
		}
		if w == 0 || len(b) < w {
			return nil, nil, fmt.Sprintf("the value of column %q is truncated", sc.Columns[i].Name)
		}
		v := b[:w]
		b = b[w:]
		if t.IsBinary() || sc.Columns[i].Array {
			off, size := binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
			if off > uint64(len(indirect)) || size > uint64(len(indirect))-off {
				return nil, nil, fmt.Sprintf("the value of column %q lies outside of indirect_data", sc.Columns[i].Name)
			}
			v = indirect[off : off+size]
		}
		values[i] = v
	}
	return values, b, ""
}

// rangeKey encodes the values of the range columns. An unset column has its minimum; if none is set, the range is
// unbounded.
func (s *PartitionSchema) rangeKey(sc *Schema, values [][]byte) (key []byte, why string) {
	any := false
	for k, id := range s.Range {
		i := sc.Find(id)
		v := values[i]
		any = any || v != nil
		if v == nil {
			v = minValue(sc.Columns[i].Type)
		}
		var err error
		if key, err = cfile.AppendKey(key, sc.Columns[i].Type, v, k == len(s.Range)-1); err != nil {
			return nil, err.Error()
		}
	}
	if !any {
		return nil, ""
	}
	return key, ""
}

// HashOf are the hash dimensions of the range that begins at lower.
func (s *PartitionSchema) HashOf(lower []byte) []HashDimension {
	for i := range s.Custom {
		if bytes.Equal(s.Custom[i].Lower, lower) {
			return s.Custom[i].Hash
		}
	}
	return s.Hash
}

// Bucket is the bucket of a row. encoded is the key of the dimension's columns, as cfile.AppendKey makes it, in
// the order of d.Columns.
func (d *HashDimension) Bucket(encoded []byte) int32 {
	return int32(murmur2(encoded, uint64(d.Seed)) % uint64(d.Buckets))
}

// murmur2 is the 64-bit MurmurHash2 (MurmurHash64A, by Austin Appleby, in the public domain).
func murmur2(b []byte, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> r
		h = (h ^ k*m) * m
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * m
	}
	h ^= h >> r
	h *= m
	return h ^ h>>r
}
