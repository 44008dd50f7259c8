package pbc

import (
	"encoding/binary"

	"stoa/internal/pb"
	"stoa/internal/sum"
)

// Append appends a whole container of version 2 with one record: a message of type typ.
func Append(dst []byte, typ string, message []byte) []byte {
	return AppendRecord(append(dst, Head(typ)...), message)
}

// Head returns the beginning of a container of version 2, whose records are messages of type typ.
//
// Kudu puts the descriptors of the type into the supplementary header, for `kudu pbc dump` alone. They are left out
// here, so that command cannot print the file; servers can read it.
func Head(typ string) (dst []byte) {
	dst = append(dst, Magic...)
	dst = binary.LittleEndian.AppendUint32(dst, 2)
	dst = binary.LittleEndian.AppendUint32(dst, headSumV2)
	return AppendRecord(dst, pb.AppendString(pb.AppendMessage(nil, 1, nil), 2, typ))
}

// AppendRecord appends a record of version 2.
func AppendRecord(dst, body []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(body)))
	dst = binary.LittleEndian.AppendUint32(dst, sum.CRC32C(dst[at:]))
	dst = append(dst, body...)
	return binary.LittleEndian.AppendUint32(dst, sum.CRC32C(body))
}
