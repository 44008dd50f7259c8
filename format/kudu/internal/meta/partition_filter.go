package meta

import (
	"bytes"
	"fmt"

	"stoa/format/cfile"
)

// PartitionFilter checks whether keys belong to a tablet.
type PartitionFilter struct {
	schema  *Schema
	part    *Partition
	ranged  []int   // positions of the range columns in the key
	hashes  [][]int // of the columns of each hash dimension
	dims    []HashDimension
	encoded []byte
}

// NewPartitionFilter is nil, which accepts all keys, if the partition schema does not say enough.
func NewPartitionFilter(tb *Tablet) *PartitionFilter {
	s := &tb.Partitioning
	p := &PartitionFilter{schema: &tb.Schema, part: &tb.Partition, dims: s.HashOf(tb.Partition.Lower())}
	var ok bool
	if p.ranged, ok = keyPositions(&tb.Schema, s.Range); !ok || !s.Stored || len(p.dims) != len(p.part.Buckets) {
		return nil
	}
	for _, d := range p.dims {
		at, ok := keyPositions(&tb.Schema, d.Columns)
		if !ok || d.Buckets <= 0 {
			return nil
		}
		p.hashes = append(p.hashes, at)
	}
	return p
}

// keyPositions are the positions of columns in the key; false if one is not a key column.
func keyPositions(sc *Schema, ids []int32) ([]int, bool) {
	out := make([]int, len(ids))
	for i, id := range ids {
		if out[i] = sc.Find(id); out[i] < 0 || !sc.Columns[out[i]].Key {
			return nil, false
		}
	}
	return out, true
}

// Outside says why the row with these key cells belongs to another tablet, to follow "the keys"; "" if it does not.
func (p *PartitionFilter) Outside(cells [][]byte) string {
	if p == nil {
		return ""
	}
	for i, d := range p.dims {
		if !p.encode(cells, p.hashes[i]) {
			return ""
		}
		if b := d.Bucket(p.encoded); b != p.part.Buckets[i] {
			return fmt.Sprintf("hash to bucket %d, the tablet's is %d", b, p.part.Buckets[i])
		}
	}
	if len(p.ranged) == 0 || !p.encode(cells, p.ranged) {
		return ""
	}
	lower, upper := p.part.Lower(), p.part.Upper()
	if bytes.Compare(p.encoded, lower) < 0 || len(upper) > 0 && bytes.Compare(p.encoded, upper) >= 0 {
		return "lie outside of the tablet's range"
	}
	return ""
}

// encode encodes the key of some columns; false if a cell does not fit its type, which is reported elsewhere.
func (p *PartitionFilter) encode(cells [][]byte, columns []int) bool {
	p.encoded = p.encoded[:0]
	for k, i := range columns {
		var err error
		if p.encoded, err = cfile.AppendKey(p.encoded, p.schema.Columns[i].Type, cells[i],
			k == len(columns)-1); err != nil {
			return false
		}
	}
	return true
}
