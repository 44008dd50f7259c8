package kudu

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stoa/format/cfile"
	"stoa/internal/pb"
	"stoa/wire"
)

// PartitionSchema is a PartitionSchemaPB: how a table is divided into tablets.
type PartitionSchema struct {
	Hash   []HashDimension // of every range that Custom does not name
	Range  []int32         // ids of the range columns; empty: no ranges
	Custom []RangeHash     // ranges with hash dimensions of their own

	stored     bool // the superblock has one
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
	Buckets    []int32
	Start, End []byte // encoded partition keys: a big-endian u32 for each bucket, then the range key
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

// parsePartition reads a PartitionPB.
func parsePartition(c *wire.Cursor) (p Partition) {
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

// parsePartitionSchema reads a PartitionSchemaPB. Its columns are known only after resolve.
func parsePartitionSchema(c *wire.Cursor) (s PartitionSchema) {
	s.stored = true
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
			s.Custom, s.customRefs, s.customOps = append(s.Custom, x), append(s.customRefs, refs), append(s.customOps, ops)
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

// resolve finds the columns that the partition schema names, and the bounds of its own ranges. It says what is wrong, if anything is.
func (s *PartitionSchema) resolve(sc *Schema) string {
	if !s.stored {
		return ""
	}
	find := func(refs []columnRef) (ids []int32, why string) {
		for _, ref := range refs {
			i := sc.Find(ref.id)
			if ref.id < 0 {
				i = sc.FindName(ref.name)
			}
			if i < 0 || sc.Columns[i].ID < 0 {
				return nil, fmt.Sprintf("there is no column %d %q", ref.id, ref.name)
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
		for i := range sc.keys {
			if !sc.Columns[i].AutoIncrement && sc.Columns[i].ID >= 0 {
				s.Range = append(s.Range, sc.Columns[i].ID)
			}
		}
	}
	for _, id := range s.Range {
		if c := sc.Columns[sc.Find(id)]; c.Array || c.Type.Width() == 0 && !c.Type.IsBinary() {
			return fmt.Sprintf("ranges of a %s", c.TypeText())
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

// Kinds of row operations that are bounds.
const (
	opLower = 6
	opUpper = 7
)

// bounds reads the two row operations of a range: its lower and its upper bound.
//
//	u8 kind, bitmap of the columns that are set, [bitmap of the nulls, if the schema has nullable columns], the values: fixed-width
//	ones little-endian, the others as u64 offset into indirect_data and u64 length
func (s *PartitionSchema) bounds(sc *Schema, ops rowOps) (lower, upper []byte, why string) {
	rest := ops.rows
	for _, want := range []byte{opLower, opUpper} {
		if len(rest) == 0 {
			return nil, nil, "a bound is missing"
		}
		if rest[0] != want {
			return nil, nil, fmt.Sprintf("row operation %d where %d is expected", rest[0], want)
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

// rowOperation reads the values of a row operation, by column; nil = not set, or null.
func rowOperation(sc *Schema, b, indirect []byte) (values [][]byte, rest []byte, why string) {
	n := (len(sc.Columns) + 7) / 8
	nullable := slices.ContainsFunc(sc.Columns, func(c Column) bool { return c.Nullable })
	maps := n
	if nullable {
		maps = 2 * n
	}
	if len(b) < maps {
		return nil, nil, "its bitmaps are cut"
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
		w := storedWidth(t)
		if t.IsBinary() || sc.Columns[i].Array {
			w = 16
		}
		if w == 0 || len(b) < w {
			return nil, nil, fmt.Sprintf("the value of column %q is cut", sc.Columns[i].Name)
		}
		v := b[:w]
		b = b[w:]
		if t.IsBinary() || sc.Columns[i].Array {
			off, size := binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
			if off > uint64(len(indirect)) || size > uint64(len(indirect))-off {
				return nil, nil, fmt.Sprintf("the value of column %q lies outside", sc.Columns[i].Name)
			}
			v = indirect[off : off+size]
		}
		values[i] = v
	}
	return values, b, ""
}

// rangeKey encodes the values of the range columns. Nothing set is unbounded; what is not set is the smallest value.
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

// hashOf are the hash dimensions of the range that begins at lower.
func (s *PartitionSchema) hashOf(lower []byte) []HashDimension {
	for i := range s.Custom {
		if bytes.Equal(s.Custom[i].Lower, lower) {
			return s.Custom[i].Hash
		}
	}
	return s.Hash
}

// names are the names of columns, with commas.
func (sc *Schema) names(ids []int32) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		if out[i] = "<unknown-column>"; sc.Find(id) >= 0 {
			out[i] = sc.Columns[sc.Find(id)].Name
		}
	}
	return strings.Join(out, ", ")
}

// Text writes the partition as Kudu's tools do: HASH (id) PARTITION 1, RANGE (day) PARTITION 0 <= VALUES < 100.
func (s *PartitionSchema) Text(sc *Schema, p *Partition) string {
	hash := s.hashOf(p.Lower())
	if len(p.Buckets) != len(hash) {
		return fmt.Sprintf("<hash-partition-error: %d vs %d expected buckets>", len(p.Buckets), len(hash))
	}
	var parts []string
	for i, d := range hash {
		parts = append(parts, fmt.Sprintf("HASH (%s) PARTITION %d", sc.names(d.Columns), p.Buckets[i]))
	}
	if len(s.Range) > 0 {
		parts = append(parts, fmt.Sprintf("RANGE (%s) PARTITION %s", sc.names(s.Range), s.RangeText(sc, p.Lower(), p.Upper())))
	}
	return strings.Join(parts, ", ")
}

// SchemaText writes how the table is divided: HASH (id) PARTITIONS 2, RANGE (day).
func (s *PartitionSchema) SchemaText(sc *Schema) string {
	var parts []string
	for _, d := range s.Hash {
		t := fmt.Sprintf("HASH (%s) PARTITIONS %d", sc.names(d.Columns), d.Buckets)
		if d.Seed != 0 {
			t += fmt.Sprintf(" SEED %d", d.Seed)
		}
		parts = append(parts, t)
	}
	if len(s.Range) > 0 {
		parts = append(parts, "RANGE ("+sc.names(s.Range)+")")
	}
	return strings.Join(parts, ", ")
}

// RangeText writes a range: "0 <= VALUES < 100", "UNBOUNDED".
func (s *PartitionSchema) RangeText(sc *Schema, lower, upper []byte) string {
	lo, err := s.rangeKeyText(sc, lower)
	if err != nil {
		return fmt.Sprintf("<range-key-decode-error: %v>", err)
	}
	up, err := s.rangeKeyText(sc, upper)
	if err != nil {
		return fmt.Sprintf("<range-key-decode-error: %v>", err)
	}
	switch {
	case len(lower) == 0 && len(upper) == 0:
		return "UNBOUNDED"
	case len(lower) == 0:
		return "VALUES < " + up
	case len(upper) == 0:
		return lo + " <= VALUES"
	}
	return lo + " <= VALUES < " + up
}

// rangeKeyText writes an encoded range key. Keys of bounds may end early: what is missing is the smallest value.
func (s *PartitionSchema) rangeKeyText(sc *Schema, key []byte) (string, error) {
	var parts []string
	rest := key
	for k, id := range s.Range {
		t := sc.Columns[sc.Find(id)].Type
		last := k == len(s.Range)-1
		v := minValue(t)
		if len(rest) > 0 {
			n := t.Width()
			if t.IsBinary() {
				if n = len(rest); !last {
					n = separated(rest)
				}
			}
			if n > len(rest) {
				n = len(rest)
			}
			types := []cfile.Type{t}
			if t.IsBinary() && !last {
				types = append(types, cfile.String) // makes the first one not the last
			}
			values, err := cfile.DecodeKey(rest[:n], types)
			if err != nil {
				return "", err
			}
			v, rest = values[0], rest[n:]
		}
		parts = append(parts, valueText(t, v))
	}
	if len(rest) > 0 {
		return "", fmt.Errorf("%d bytes are left over", len(rest))
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return "(" + strings.Join(parts, ", ") + ")", nil
}

// separated is the length of a string that is not the last of a key, with its end.
func separated(b []byte) int {
	for i := 0; i+1 < len(b); i++ {
		if b[i] == 0 {
			if b[i+1] == 0 {
				return i + 2
			}
			i++
		}
	}
	return len(b)
}

// Bucket is the bucket of a row. encoded is the key of the dimension's columns, as cfile.AppendKey makes it, in the order of d.Columns.
func (d *HashDimension) Bucket(encoded []byte) int32 {
	return int32(murmur2(encoded, uint64(d.Seed)) % uint64(d.Buckets))
}

// murmur2 is MurmurHash2 of 64 bits (MurmurHash64A, by Austin Appleby, in the public domain).
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

// Gap is a part of a table that no given tablet holds.
type Gap struct {
	Partition Partition
	Text      string
	// Sure is true if the partition schema says that there is such a tablet: another bucket of the same range is there, or the
	// schema has no ranges. Otherwise the table may have been made without it: Kudu allows ranges that nothing covers.
	Sure bool
}

// maxGaps is the most gaps that are listed: a schema can declare billions of buckets.
const maxGaps = 10_000

// Missing lists what the partition schema implies and none of the given partitions holds: buckets of ranges, and ranges between
// the given ones. more is how many buckets were not listed because there are too many.
func (s *PartitionSchema) Missing(sc *Schema, given []Partition) (gaps []Gap, more int64) {
	type span struct{ lower, upper string }
	have := map[span]map[string]bool{}
	for i := range given {
		p := &given[i]
		k := span{string(p.Lower()), string(p.Upper())}
		if have[k] == nil {
			have[k] = map[string]bool{}
		}
		have[k][bucketKey(p.Buckets)] = true
	}
	ranges := make([]span, 0, len(have))
	for k := range have {
		ranges = append(ranges, k)
	}
	for _, c := range s.Custom {
		if k := (span{string(c.Lower), string(c.Upper)}); have[k] == nil {
			ranges = append(ranges, k)
		}
	}
	if len(ranges) == 0 {
		ranges = append(ranges, span{})
	}
	slices.SortFunc(ranges, func(a, b span) int { return cmp.Or(cmp.Compare(a.lower, b.lower), cmp.Compare(a.upper, b.upper)) })
	add := func(p Partition, sure bool) {
		if len(gaps) == maxGaps {
			more++
			return
		}
		text := ""
		if len(p.Buckets) > 0 {
			text = s.Text(sc, &p)
		} else {
			text = fmt.Sprintf("RANGE (%s) PARTITION %s", sc.names(s.Range), s.RangeText(sc, p.Start, p.End))
		}
		gaps = append(gaps, Gap{p, text, sure})
	}
	end, first, infinite := "", true, false // how far the ranges before reach
	for _, k := range ranges {
		if len(s.Range) > 0 && (first && k.lower != "" || !first && !infinite && k.lower > end) {
			add(Partition{Start: []byte(end), End: []byte(k.lower)}, false)
		}
		if k.upper == "" {
			infinite = true
		} else {
			end = max(end, k.upper)
		}
		first = false
		hash, total := s.hashOf([]byte(k.lower)), int64(1)
		for _, d := range hash {
			if total > maxBuckets/int64(d.Buckets) {
				total = maxBuckets
				break
			}
			total *= int64(d.Buckets)
		}
		sure := len(have[k]) > 0 || len(s.Range) == 0
		look := min(total, int64(maxGaps+len(have[k])+1))
		buckets := make([]int32, len(hash))
		for range look {
			if !have[k][bucketKey(buckets)] {
				add(s.bucketOf(buckets, k.lower, k.upper), sure)
			}
			for i := len(buckets) - 1; i >= 0; i-- {
				if buckets[i]++; buckets[i] < hash[i].Buckets {
					break
				}
				buckets[i] = 0
			}
		}
		more += total - look
	}
	if len(s.Range) > 0 && !infinite {
		add(Partition{Start: []byte(end)}, false)
	}
	return gaps, more
}

// maxBuckets is where the counting of buckets ends.
const maxBuckets = 1 << 40

// Missing lists the parts of a table that none of its tablets holds; the tablets may be of several servers. The first list is of
// what must be somewhere; uncovered are ranges that the table may have been made without: only its master knows. more is how many
// missing buckets were not listed.
func Missing(tablets []*Tablet) (missing, uncovered []Gap, more int64) {
	var newest *Tablet
	var given []Partition
	var custom []RangeHash // a tablet knows of the ranges that there were when it was made
	for _, t := range tablets {
		if t.HasData() {
			given = append(given, t.Partition)
		}
		if newest == nil || t.SchemaVersion > newest.SchemaVersion {
			newest = t
		}
		for _, c := range t.Partitioning.Custom {
			if !slices.ContainsFunc(custom, func(x RangeHash) bool { return bytes.Equal(x.Lower, c.Lower) }) {
				custom = append(custom, c)
			}
		}
	}
	if newest == nil || !newest.Partitioning.stored {
		return nil, nil, 0
	}
	s := newest.Partitioning
	s.Custom = custom
	gaps, more := s.Missing(&newest.Schema, given)
	for _, g := range gaps {
		if g.Sure {
			missing = append(missing, g)
		} else {
			uncovered = append(uncovered, g)
		}
	}
	return missing, uncovered, more
}

func bucketKey(buckets []int32) string {
	b := make([]byte, 0, 4*len(buckets))
	for _, x := range buckets {
		b = binary.BigEndian.AppendUint32(b, uint32(x))
	}
	return string(b)
}

// bucketOf is the partition of a bucket of a range.
func (s *PartitionSchema) bucketOf(buckets []int32, lower, upper string) Partition {
	p := Partition{Buckets: slices.Clone(buckets)}
	p.Start = append([]byte(bucketKey(buckets)), lower...)
	end := slices.Clone(buckets)
	if upper == "" && len(end) > 0 {
		end[len(end)-1]++
	}
	p.End = append([]byte(bucketKey(end)), upper...)
	return p
}
