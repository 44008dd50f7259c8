package layout

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf8"

	"stoa/format"
	"stoa/region"
	"stoa/wire"
)

// Cursor reads structures whose length is not known beforehand: header and descriptors. Its bytes are the beginning of
// such a structure; more bytes of the file follow. Short means that the structure continues after these bytes and must
// be read again with more of them; any other error is damage of the file.
type Cursor struct {
	*wire.Cursor
	More  int64
	Short bool

	Limits *format.Limits // nil: no limits
}

// Need reports whether the n bytes of field name are present. If not, either Short is set, or the file is too short.
func (c *Cursor) Need(name string, n int64) bool {
	if c.Err() != nil {
		return false
	}
	left := int64(c.Left())
	if n <= left {
		return true
	}
	c.Short = n <= left+c.More
	c.Fail(c.Pos(), c.Left(), name, "%d bytes are needed, the file has %d more", n, left+c.More)
	return false
}

func (c *Cursor) u32(name string) uint32 {
	if !c.Need(name, 4) {
		return 0
	}
	return c.U32(name)
}

// Count reads a fixed32 that cannot be negative.
func (c *Cursor) Count(name string) int64 {
	n := int32(c.u32(name))
	if n < 0 {
		c.Fail(c.Pos()-4, 4, name, "%d is negative", n)
		return 0
	}
	return int64(n)
}

func (c *Cursor) u64(name string) uint64 {
	if !c.Need(name, 8) {
		return 0
	}
	return c.U64(name)
}

// long reads a zig-zag varint.
func (c *Cursor) long(name string) int64 {
	if c.Err() != nil {
		return 0
	}
	b := c.Rest()
	v, n := Varint(b)
	if n <= 0 {
		c.Short = n == 0 && c.More > 0
		c.Fail(c.Pos(), min(c.Left(), 10), name, "not a varint of at most 64 bits")
		return 0
	}
	c.Skip(name, n)
	c.Node(region.Data, c.Pos()-n, n, name, strconv.FormatInt(v, 10))
	return v
}

// Varint reads a zig-zag varint of at most 64 bits; n is 0 if b ends within it, and negative if it is too long.
func Varint(b []byte) (v int64, n int) {
	var x uint64
	for i := 0; i < len(b); i++ {
		if i == 9 && b[i] > 1 {
			return 0, -1
		}
		x |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return int64(x>>1) ^ -int64(x&1), i + 1
		}
	}
	return 0, 0
}

// AppendLong appends a zig-zag varint.
func AppendLong(b []byte, v int64) []byte { return binary.AppendUvarint(b, uint64(v)<<1^uint64(v>>63)) }

// AppendText appends a length and the bytes, the stored form of String and Bytes.
func AppendText[T ~string | ~[]byte](b []byte, v T) []byte {
	if len(v) < 64 {
		b = append(b, byte(len(v)<<1))
	} else {
		b = AppendLong(b, int64(len(v)))
	}
	return append(b, v...)
}

// text reads a length and that many bytes, the stored form of String and Bytes, and describes them as one field.
func (c *Cursor) text(name string) []byte {
	start := c.Pos()
	b := c.Rest()
	n, used := Varint(b)
	switch {
	case c.Err() != nil:
		return nil
	case used <= 0:
		c.Short = used == 0 && c.More > 0
		c.Fail(start, min(c.Left(), 10), name+".length", "not a varint of at most 64 bits")
		return nil
	case n < 0:
		c.Fail(start, used, name+".length", "%d is negative", n)
		return nil
	case n > int64(c.Left()-used)+c.More:
		c.Fail(start, used, name+".length", "%d bytes are declared, the file has %d more", n,
			int64(c.Left()-used)+c.More)
		return nil
	case !c.Need(name, int64(used)+n):
		return nil
	}
	c.Skip(name, used+int(n))
	out := b[used : used+int(n)]
	c.Node(region.Data, start, used+int(n), name, printable(out))
	return out
}

// printable returns b for display: quoted if it is text, else hexadecimal, and shortened if it is long.
func printable(b []byte) string {
	const maxLen = 60
	cut := ""
	if len(b) > maxLen {
		b, cut = b[:maxLen], "…"
		for len(b) > maxLen-utf8.UTFMax && !utf8.Valid(b) {
			b = b[:len(b)-1]
		}
	}
	if utf8.Valid(b) {
		return strconv.Quote(string(b)) + cut
	}
	return fmt.Sprintf("0x%x%s", b, cut)
}
