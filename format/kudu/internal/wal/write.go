package wal

import (
	"encoding/binary"

	"stoa/format/kudu/internal/meta"
	"stoa/internal/pb"
)

// AppendEmpty appends a log's first segment, not closed, without operations. Kudu refuses a tablet that has rows but no
// log at all: it would not know its last Raft operation.
func AppendEmpty(dst []byte, t *meta.Tablet) []byte {
	m := pb.AppendString(nil, 5, t.ID)
	m = pb.AppendUint(m, 6, 1)
	m = pb.AppendMessage(m, 7, t.Schema.Append(nil))
	m = pb.AppendUint(m, 8, uint64(t.SchemaVersion))
	dst = append(dst, Magic...)
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(m))), m...)
}
