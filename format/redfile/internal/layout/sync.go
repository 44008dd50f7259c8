package layout

import (
	"fmt"
	"slices"

	"stoa/internal/thrift"
)

// The document's "potential extension", built. A writer puts, where option sync=N says so,
//
//   - a sync block at the beginning of the file and after every row group: a page of a type that nobody knows, so that
//     whoever reads pages skips it, and whoever goes by offsets never comes there;
//   - after every N-th row group the metadata of all row groups so far, with its length and the magic: a file that is
//     cut there is a whole RedFile for older readers. That it is not the last metadata is said by a pair of its
//     key/value metadata, moreKey, so that we mention rows that are missing.
//
// The body of a sync block is not compressed. It is a struct in the protocol of the file:
//
//	1 marker     binary, 16 bytes that are the same in all blocks of the file, and in its key/value metadata
//	2 offset     i64   of the block's header: a block that is found elsewhere was copied there with something else
//	3 groups     i32   row groups before the block, those of the files before it included if each has its own
//	4 rows       i64   rows before the block, likewise
//	5 metadata   binary, of the first block: FileMetaData without row groups
//	6 columns    list<i64>: offsets of the column metadata of the row group before the block
//	7 group_rows i64   its rows
const SyncPage = 0x53594e43 // "SYNC"

// SyncKey is the key of the marker in the key/value metadata, in hexadecimal; LevelsKey is that of the largest
// definition and repetition level in the metadata of a column, which generation E has no fields for; TextKey,
// with the value UTF8, says there that BYTE_ARRAYs are text, which generation A has no words for. moreKey, with
// the value true, is in the metadata so far: the writer meant to write more after it, the last metadata at
// smallest.
const (
	SyncKey   = "stoa.sync"
	moreKey   = "stoa.more"
	LevelsKey = "stoa.levels"
	TextKey   = "stoa.converted_type"
)

// Converted is what the pairs of a column say of its type.
func (m *ColumnMeta) Converted() Converted {
	if m.Type == ByteArray && slices.Contains(m.Pairs, KeyValue{TextKey, "UTF8"}) {
		return ConvUTF8
	}
	return ConvNone
}

// More is the pair that says that m is not the last metadata of its file.
func (m *FileMeta) More() int {
	return slices.IndexFunc(m.Pairs, func(kv KeyValue) bool { return kv.Key == moreKey })
}

// SoFar is m as it is written between row groups.
func (m *FileMeta) SoFar() *FileMeta {
	out := *m
	out.Pairs = append(slices.Clone(m.Pairs), KeyValue{moreKey, "true"})
	return &out
}

// Finished is m as metadata of a file that was put together again.
func (m *FileMeta) Finished() FileMeta {
	out := *m
	if i := m.More(); i >= 0 {
		out.Pairs = slices.Delete(slices.Clone(m.Pairs), i, i+1)
	}
	return out
}

type SyncBlock struct {
	Marker   []byte
	Offset   int64
	Groups   int32
	Rows     int64
	Metadata []byte
	Columns  []int64
	Group    int64
}

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
			s.Group = r.I64("group_rows")
		}
	}
	return s
}

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
	w.I64(7, s.Group)
	w.End()
}

// Marker is that of the sync blocks; nil if there are none.
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

// Ascends reports whether the metadata of the columns follow each other in front of the block.
func (s *SyncBlock) Ascends() bool {
	before := int64(0)
	for _, off := range s.Columns {
		if off < before+minColumn {
			return false
		}
		before = off
	}
	return before < s.Offset
}

// ProtocolOfSync: a sync block begins with a string, not with a number.
func ProtocolOfSync(b []byte) thrift.Protocol {
	if len(b) > 0 && b[0] == 11 {
		return thrift.Binary
	}
	return thrift.Compact
}
