package redfile

import (
	"fmt"
	"slices"

	"stoa/internal/thrift"
)

// The document's "potential extension", built. A writer puts, where option sync=N says so,
//
//   - a sync block at the beginning of the file and behind every row group: a page of a type that nobody knows, so that
//     whoever reads pages passes over it, and whoever goes by offsets never comes there;
//   - behind every N-th row group the metadata of all row groups so far, with its length and the magic: a file that is
//     cut there is a whole RedFile for older readers. That it is not the last metadata is said by a pair of its
//     key/value metadata, moreKey, so that we tell of rows that are missing.
//
// The body of a sync block is not compressed. It is a struct in the protocol of the file:
//
//	1 marker     binary, 16 bytes that are the same in all blocks of the file, and in its key/value metadata
//	2 offset     i64   of the block's header: a block that is found elsewhere was copied there with something else
//	3 groups     i32   row groups before the block, those of the files before it included if there is a file for each
//	                   row group
//	4 rows       i64   rows before the block, likewise
//	5 metadata   binary, of the first block: FileMetaData without row groups
//	6 columns    list<i64>: offsets of the column metadata of the row group before the block
//	7 group_rows i64   its rows
const syncPage = 0x53594e43 // "SYNC"

// syncKey is the key of the marker in the key/value metadata, in hexadecimal; levelsKey is that of the greatest
// definition and repetition level in the metadata of a column, which generation E has no fields for; textKey,
// with the value UTF8, says there that BYTE_ARRAYs are text, which generation A has no words for. moreKey, with
// the value true, is in the metadata so far: the writer meant to write more behind it, the last metadata at
// least.
const (
	syncKey   = "stoa.sync"
	moreKey   = "stoa.more"
	levelsKey = "stoa.levels"
	textKey   = "stoa.converted_type"
)

// converted is what the pairs of a column say of its type.
func (m *columnMeta) converted() converted {
	if m.typ == ByteArray && slices.Contains(m.pairs, keyValue{textKey, "UTF8"}) {
		return convUTF8
	}
	return convNone
}

// more is the pair that says that m is not the last metadata of its file.
func (m *fileMeta) more() int {
	return slices.IndexFunc(m.pairs, func(kv keyValue) bool { return kv.key == moreKey })
}

// soFar is m as it is written between row groups.
func (m *fileMeta) soFar() *fileMeta {
	out := *m
	out.pairs = append(slices.Clone(m.pairs), keyValue{moreKey, "true"})
	return &out
}

// finished is m as metadata of a file that was put together again.
func (m *fileMeta) finished() fileMeta {
	out := *m
	if i := m.more(); i >= 0 {
		out.pairs = slices.Delete(slices.Clone(m.pairs), i, i+1)
	}
	return out
}

type syncBlock struct {
	marker   []byte
	offset   int64
	groups   int32
	rows     int64
	metadata []byte
	columns  []int64
	group    int64
}

func parseSync(r *thrift.Reader, name string) (s syncBlock) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			s.marker = slices.Clone(r.Bytes("marker"))
		case 2:
			s.offset = r.I64("offset")
		case 3:
			s.groups = r.I32("groups")
		case 4:
			s.rows = r.I64("rows")
		case 5:
			s.metadata = slices.Clone(r.Bytes("metadata"))
		case 6:
			for range r.List("columns", thrift.I64) {
				s.columns = append(s.columns, r.I64(""))
			}
		case 7:
			s.group = r.I64("group_rows")
		}
	}
	return s
}

func (s *syncBlock) write(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.Bytes(1, s.marker)
	w.I64(2, s.offset)
	w.I32(3, s.groups)
	w.I64(4, s.rows)
	if s.metadata != nil {
		w.Bytes(5, s.metadata)
	}
	w.List(6, thrift.I64, len(s.columns))
	for _, c := range s.columns {
		w.I64(thrift.Item, c)
	}
	w.I64(7, s.group)
	w.End()
}

// marker is that of the sync blocks; nil if there are none.
func (m *fileMeta) marker() []byte {
	for _, kv := range m.pairs {
		if kv.key == syncKey && len(kv.value) == 32 {
			b := make([]byte, 16)
			if _, err := fmt.Sscanf(kv.value, "%x", &b); err == nil {
				return b
			}
		}
	}
	return nil
}

// ascends reports whether the metadata of the columns follow each other in front of the block.
func (s *syncBlock) ascends() bool {
	before := int64(0)
	for _, off := range s.columns {
		if off < before+minColumn {
			return false
		}
		before = off
	}
	return before < s.offset
}

// protocolOfSync: a sync block begins with a string, not with a number.
func protocolOfSync(b []byte) thrift.Protocol {
	if len(b) > 0 && b[0] == 11 {
		return thrift.Binary
	}
	return thrift.Compact
}
