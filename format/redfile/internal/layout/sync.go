package layout

import (
	"fmt"
	"slices"

	"stoa/internal/thrift"
)

// This is the document's "potential extension". With option sync=N a writer adds
//
//   - a sync block at the beginning of the file and after every row group: a page of its own type, which readers of
//     pages skip, and to which no offset in the metadata refers;
//   - after every N-th row group the metadata of all row groups so far, with its length and the magic: a file that is
//     truncated there is a complete RedFile to other readers. The pair moreKey in its key/value metadata marks it as
//     intermediate, so that verify reports missing rows.
//
// The body of a sync block is not compressed. It is a struct in the protocol of the file:
//
//	1 marker     binary, 16 bytes that are the same in all blocks of the file, and in its key/value metadata
//	2 offset     i64   of the block's header: a block at another offset was copied there
//	3 groups     i32   row groups of the table before the block, those of the parts before included
//	4 rows       i64   rows before the block, likewise
//	5 metadata   binary, of the first block: FileMetaData without row groups
//	6 columns    list<i64>: offsets of the column metadata of the row group before the block
//	7 group_rows i64   its rows
const SyncPage = 0x53594e43 // "SYNC"

// Keys of key/value metadata.
const (
	SyncKey   = "stoa.sync"           // of a file: the marker of its sync blocks, in hexadecimal
	moreKey   = "stoa.more"           // of a file, with value true: intermediate metadata
	LevelsKey = "stoa.levels"         // of a column: "MAX_DEF,MAX_REP", for which generation E has no fields
	TextKey   = "stoa.converted_type" // of a column, with value UTF8: text, for which generation A has no annotation
)

// Converted returns the converted type stored in the pairs of a column, ConvUTF8 or ConvNone.
func (m *ColumnMeta) Converted() Converted {
	if m.Type == ByteArray && slices.Contains(m.Pairs, KeyValue{TextKey, "UTF8"}) {
		return ConvUTF8
	}
	return ConvNone
}

// More returns the index of the pair that marks m as intermediate metadata; -1 if m is the final metadata of its file.
func (m *FileMeta) More() int {
	return slices.IndexFunc(m.Pairs, func(kv KeyValue) bool { return kv.Key == moreKey })
}

// SoFar returns m in the form written between row groups.
func (m *FileMeta) SoFar() *FileMeta {
	out := *m
	out.Pairs = append(slices.Clone(m.Pairs), KeyValue{moreKey, "true"})
	return &out
}

// Finished returns m without the pair of More, for a recovered file.
func (m *FileMeta) Finished() FileMeta {
	out := *m
	if i := m.More(); i >= 0 {
		out.Pairs = slices.Delete(slices.Clone(m.Pairs), i, i+1)
	}
	return out
}

// SyncBlock is the body of a sync block, see SyncPage.
type SyncBlock struct {
	Marker    []byte
	Offset    int64
	Groups    int32
	Rows      int64
	Metadata  []byte // set only in the first block of a file
	Columns   []int64
	GroupRows int64
}

// ParseSync parses the body of a sync block. Errors are those of r.
func ParseSync(r *thrift.Reader, name string) (s SyncBlock) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			s.Marker = slices.Clone(r.Bytes("marker"))
		case 2:
			s.Offset = r.I64("offset")
		case 3:
			s.Groups = r.I32("groups")
		case 4:
			s.Rows = r.I64("rows")
		case 5:
			s.Metadata = slices.Clone(r.Bytes("metadata"))
		case 6:
			for range r.List("columns", thrift.I64) {
				s.Columns = append(s.Columns, r.I64(""))
			}
		case 7:
			s.GroupRows = r.I64("group_rows")
		}
	}
	return s
}

// Write writes the body of a sync block.
func (s *SyncBlock) Write(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.Bytes(1, s.Marker)
	w.I64(2, s.Offset)
	w.I32(3, s.Groups)
	w.I64(4, s.Rows)
	if s.Metadata != nil {
		w.Bytes(5, s.Metadata)
	}
	w.List(6, thrift.I64, len(s.Columns))
	for _, c := range s.Columns {
		w.I64(thrift.Item, c)
	}
	w.I64(7, s.GroupRows)
	w.End()
}

// Marker returns the 16 bytes of the marker of the file's sync blocks; nil if it has none.
func (m *FileMeta) Marker() []byte {
	for _, kv := range m.Pairs {
		if kv.Key == SyncKey && len(kv.Value) == 32 {
			b := make([]byte, 16)
			if _, err := fmt.Sscanf(kv.Value, "%x", &b); err == nil {
				return b
			}
		}
	}
	return nil
}

// Ascending reports whether the offsets of the column metadata ascend and are less than that of the block.
func (s *SyncBlock) Ascending() bool {
	last := int64(0)
	for _, off := range s.Columns {
		if off < last+minColumn {
			return false
		}
		last = off
	}
	return last < s.Offset
}

// ProtocolOfSync is ProtocolOf for the body of a sync block, whose first field is binary and not an i32.
func ProtocolOfSync(b []byte) thrift.Protocol {
	if len(b) > 0 && b[0] == 11 {
		return thrift.Binary
	}
	return thrift.Compact
}
