package pb

import "encoding/binary"

func appendTag(dst []byte, field int, w Wire) []byte {
	return binary.AppendUvarint(dst, uint64(field)<<3|uint64(w))
}

// AppendUint appends field as a varint. It is for uint32, uint64, enums and, sign-extended, int32 and int64.
func AppendUint(dst []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(appendTag(dst, field, Varint), v)
}

// AppendInt appends field as a varint of type int32 or int64: negative values take ten bytes.
func AppendInt(dst []byte, field int, v int64) []byte { return AppendUint(dst, field, uint64(v)) }

// AppendBool appends field as a varint 0 or 1.
func AppendBool(dst []byte, field int, v bool) []byte {
	if v {
		return AppendUint(dst, field, 1)
	}
	return AppendUint(dst, field, 0)
}

// AppendFixed32 appends field as four bytes.
func AppendFixed32(dst []byte, field int, v uint32) []byte {
	return binary.LittleEndian.AppendUint32(appendTag(dst, field, Fixed32), v)
}

// AppendFixed64 appends field as eight bytes.
func AppendFixed64(dst []byte, field int, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(dst, field, Fixed64), v)
}

// AppendBytes appends field, preceded by its length.
func AppendBytes(dst []byte, field int, v []byte) []byte {
	dst = binary.AppendUvarint(appendTag(dst, field, Bytes), uint64(len(v)))
	return append(dst, v...)
}

// AppendString is AppendBytes of a string.
func AppendString(dst []byte, field int, v string) []byte {
	dst = binary.AppendUvarint(appendTag(dst, field, Bytes), uint64(len(v)))
	return append(dst, v...)
}

// AppendMessage appends field as a message, that is, its encoded bytes preceded by their length.
func AppendMessage(dst []byte, field int, body []byte) []byte { return AppendBytes(dst, field, body) }
