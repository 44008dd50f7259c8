package meta

import (
	"encoding/binary"
	"net"
	"slices"
	"strconv"

	"stoa/format/cfile"
	"stoa/internal/pb"
)

// Append appends the schema to dst as a SchemaPB. So do the other methods of this name, with the message they mention.
func (s *Schema) Append(dst []byte) []byte {
	for i := range s.Columns {
		dst = pb.AppendMessage(dst, 1, s.Columns[i].append(nil))
	}
	return dst
}

// append appends the column as a ColumnSchemaPB, with the fields that Kudu always writes.
func (c *Column) append(dst []byte) []byte {
	if c.ID >= 0 {
		dst = pb.AppendUint(dst, 1, uint64(c.ID))
	}
	dst = pb.AppendString(dst, 2, c.Name)
	typ := c.Type
	if c.Array {
		typ = typeNested
	}
	dst = pb.AppendUint(dst, 3, uint64(typ))
	dst = pb.AppendBool(dst, 4, c.Key)
	dst = pb.AppendBool(dst, 5, c.Nullable)
	if c.ReadDefault != nil {
		dst = pb.AppendBytes(dst, 6, c.ReadDefault)
	}
	if c.WriteDefault != nil {
		dst = pb.AppendBytes(dst, 7, c.WriteDefault)
	}
	dst = pb.AppendUint(dst, 8, uint64(c.Encoding))
	dst = pb.AppendUint(dst, 9, uint64(c.Compression))
	dst = pb.AppendUint(dst, 10, uint64(c.BlockSize))
	if attributes := c.attributes(); attributes != nil {
		dst = pb.AppendMessage(dst, 11, attributes)
	}
	if c.Comment != "" {
		dst = pb.AppendString(dst, 12, c.Comment)
	}
	dst = pb.AppendBool(dst, 13, c.Immutable)
	if c.AutoIncrement {
		dst = pb.AppendBool(dst, 14, true)
	}
	if c.Array {
		element := pb.AppendUint(nil, 1, uint64(c.Type))
		dst = pb.AppendMessage(dst, 15, pb.AppendMessage(nil, 1, element))
	}
	return dst
}

// attributes is the column's ColumnTypeAttributesPB; nil if its type has none.
func (c *Column) attributes() (out []byte) {
	if decimalDigits(c.Type) > 0 {
		return pb.AppendInt(pb.AppendInt(nil, 1, int64(c.Precision)), 2, int64(c.Scale))
	}
	if c.Length > 0 {
		return pb.AppendInt(nil, 3, int64(c.Length))
	}
	return nil
}

// Append appends the PartitionSchemaPB of a table with schema sc.
func (s *PartitionSchema) Append(dst []byte, sc *Schema) []byte {
	dst = appendHashSchema(dst, 1, s.Hash)
	dst = pb.AppendMessage(dst, 2, appendColumnRefs(nil, s.Range))
	for i := range s.Custom {
		x := &s.Custom[i]
		ops := rowOps{}
		s.appendBound(&ops, sc, opLower, x.Lower)
		s.appendBound(&ops, sc, opUpper, x.Upper)
		bounds := pb.AppendBytes(nil, 2, ops.rows)
		if ops.indirect != nil {
			bounds = pb.AppendBytes(bounds, 3, ops.indirect)
		}
		dst = pb.AppendMessage(dst, 5, appendHashSchema(pb.AppendMessage(nil, 1, bounds), 2, x.Hash))
	}
	return dst
}

// appendHashSchema appends hash dimensions as HashBucketSchemaPBs of a field.
func appendHashSchema(dst []byte, field int, dims []HashDimension) []byte {
	for _, d := range dims {
		m := appendColumnRefs(nil, d.Columns)
		m = pb.AppendInt(m, 2, int64(d.Buckets))
		if d.Seed != 0 {
			m = pb.AppendUint(m, 3, uint64(d.Seed))
		}
		dst = pb.AppendMessage(dst, field, m)
	}
	return dst
}

// appendBound appends a bound of a range as a row operation (see bounds): the inverse of rangeKey. A key that cannot be
// decoded, which no tablet has, is written as an unset bound.
func (s *PartitionSchema) appendBound(ops *rowOps, sc *Schema, kind byte, key []byte) {
	n := (len(sc.Columns) + 7) / 8
	set := make([]byte, n)
	var values []byte
	var types []cfile.Type
	for _, id := range s.Range {
		types = append(types, sc.Columns[sc.Find(id)].Type)
	}
	if len(key) > 0 {
		cells, err := cfile.DecodeKey(key, types)
		for k := range sc.Columns {
			j := slices.Index(s.Range, sc.Columns[k].ID)
			if err != nil || j < 0 {
				continue
			}
			set[k/8] |= 1 << (k % 8)
			if v := cells[j]; types[j].IsBinary() {
				values = binary.LittleEndian.AppendUint64(values, uint64(len(ops.indirect)))
				values = binary.LittleEndian.AppendUint64(values, uint64(len(v)))
				ops.indirect = append(ops.indirect, v...)
			} else {
				values = append(values, v...)
			}
		}
	}
	ops.rows = append(append(ops.rows, kind), set...)
	if slices.ContainsFunc(sc.Columns, func(c Column) bool { return c.Nullable }) {
		ops.rows = append(ops.rows, make([]byte, n)...)
	}
	ops.rows = append(ops.rows, values...)
}

// appendColumnRefs appends columns as ColumnIdentifierPBs, by their ids.
func appendColumnRefs(dst []byte, ids []int32) []byte {
	for _, id := range ids {
		dst = pb.AppendMessage(dst, 1, pb.AppendInt(nil, 1, int64(id)))
	}
	return dst
}

// Append appends the PartitionPB.
func (p *Partition) Append(dst []byte) []byte {
	var packed []byte
	for _, b := range p.Buckets {
		packed = binary.AppendUvarint(packed, uint64(b))
	}
	if packed != nil {
		dst = pb.AppendBytes(dst, 1, packed)
	}
	return pb.AppendBytes(pb.AppendBytes(dst, 2, p.Start), 3, p.End)
}

// Append appends the TabletSuperBlockPB.
func (t *Tablet) Append(dst []byte) []byte {
	dst = pb.AppendString(dst, 1, t.TableID)
	dst = pb.AppendString(dst, 2, t.ID)
	dst = pb.AppendInt(dst, 3, t.LastDurableMRS)
	for i := range t.RowSets {
		dst = pb.AppendMessage(dst, 6, t.RowSets[i].append(nil))
	}
	dst = pb.AppendString(dst, 7, t.Table)
	dst = pb.AppendMessage(dst, 8, t.Schema.Append(nil))
	dst = pb.AppendUint(dst, 9, uint64(t.SchemaVersion))
	dst = pb.AppendUint(dst, 10, uint64(t.State))
	dst = pb.AppendMessage(dst, 13, t.Partition.Append(nil))
	dst = pb.AppendMessage(dst, 14, t.Partitioning.Append(nil, &t.Schema))
	if t.DataDirs != nil {
		var group []byte
		for _, uuid := range t.DataDirs {
			group = pb.AppendString(group, 1, uuid)
		}
		dst = pb.AppendMessage(dst, 15, group)
	}
	return pb.AppendBool(dst, 16, t.CountsLive)
}

// append appends the RowSetDataPB.
func (r *RowSet) append(dst []byte) []byte {
	dst = pb.AppendUint(dst, 1, r.ID)
	dst = pb.AppendInt(dst, 2, r.LastDurableDMS)
	for _, c := range r.Columns {
		m := pb.AppendMessage(nil, 2, c.append(nil))
		dst = pb.AppendMessage(dst, 3, pb.AppendInt(m, 4, int64(c.Column)))
	}
	for field, deltas := range [][]BlockRef{r.Redo, r.Undo} {
		for _, b := range deltas {
			dst = pb.AppendMessage(dst, 4+field, pb.AppendMessage(nil, 2, b.append(nil)))
		}
	}
	for field, b := range []BlockRef{r.Bloom, r.Adhoc} {
		if !b.IsNull() {
			dst = pb.AppendMessage(dst, 6+field, b.append(nil))
		}
	}
	for field, key := range [][]byte{r.MinKey, r.MaxKey} {
		if key != nil { // Kudu leaves out the keys of some rowsets
			dst = pb.AppendBytes(dst, 8+field, key)
		}
	}
	if r.LiveRows < 0 {
		return dst
	}
	return pb.AppendInt(dst, 10, r.LiveRows)
}

func (b BlockRef) append(dst []byte) []byte { return pb.AppendFixed64(dst, 1, b.ID) }

// Append appends the ConsensusMetadataPB.
func (m *Consensus) Append(dst []byte) []byte {
	dst = pb.AppendMessage(dst, 1, m.AppendConfig(nil))
	dst = pb.AppendInt(dst, 2, m.Term)
	if m.VotedFor != "" {
		dst = pb.AppendString(dst, 3, m.VotedFor)
	}
	return dst
}

// AppendConfig appends the RaftConfigPB of the peers.
func (m *Consensus) AppendConfig(dst []byte) []byte {
	dst = pb.AppendInt(dst, 1, m.Index)
	for _, p := range m.Peers {
		peer := pb.AppendString(nil, 1, p.UUID)
		kind := int64(0) // NON_VOTER
		if p.Voter {
			kind = 1
		}
		peer = pb.AppendInt(peer, 2, kind)
		if host, port, err := net.SplitHostPort(p.Address); err == nil {
			n, _ := strconv.ParseUint(port, 10, 16) // checked by whoever made the peer
			peer = pb.AppendMessage(peer, 3, pb.AppendUint(pb.AppendString(nil, 1, host), 2, n))
		}
		dst = pb.AppendMessage(dst, 3, peer)
	}
	return dst
}
