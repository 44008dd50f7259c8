package block

import (
	"encoding/binary"

	"stoa/internal/pb"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/wire"
)

// MinFile is the size in bytes of a header and a footer without messages.
const MinFile = 2 * (MagicLen + 4)

// Part is a section of n bytes of c that is traced as a structure.
func Part(c *wire.Cursor, name string, n int) *wire.Cursor {
	if n >= 0 && n <= c.Left() && c.Err() == nil {
		c.Node(region.Struct, c.Pos(), n, name, "")
	}
	return c.Section(name, n)
}

// Frame is the size and the checksum of a header, footer or block.
type Frame struct {
	size             int    // bytes of the whole structure
	Stored, Computed uint32 // checksums; both 0 if there are none
}

// MagicVersion returns the format version, 1 or 2, of a magic; 0 if b is not a magic.
func MagicVersion(b []byte) int {
	switch string(b) {
	case MagicV1:
		return 1
	case MagicV2:
		return 2
	}
	return 0
}

// ParseMagic reads the eight bytes of a magic.
func ParseMagic(c *wire.Cursor) (version int) {
	b := c.Bytes("magic", MagicLen)
	if b == nil {
		return 0
	}
	if version = MagicVersion(b); version == 0 {
		c.Fail(c.Pos()-MagicLen, MagicLen, "magic", "%q is neither %q nor %q: not a CFile", b, MagicV1, MagicV2)
	}
	return version
}

// ParseLength reads the length of a message.
func ParseLength(c *wire.Cursor) int {
	n := c.U32("length")
	if n > MaxProtobuf {
		c.Fail(c.Pos()-4, 4, "length", "%d bytes, a header or footer has at most %d", n, MaxProtobuf)
		return 0
	}
	return int(n)
}

// ParseHeader reads the header at the beginning of c:
//
//	magic     8
//	length    u32
//	message   CFileHeaderPB
//	checksum  u32, CRC-32C of all before it; only if the footer's features say so
func ParseHeader(c *wire.Cursor, checksums bool) (h Header, fr Frame) {
	all := c.Rest()
	h.Version = ParseMagic(c)
	n := ParseLength(c)
	m := Part(c, "message", n)
	h.Major, h.Minor = -1, -1
	for r := pb.NewReader(m); r.Next(); {
		switch r.Field() {
		case 1:
			h.Major = int(r.Int32("major_version"))
		case 2:
			h.Minor = int(r.Int32("minor_version"))
		case 3:
			h.Meta = append(h.Meta, parsePair(r, "metadata"))
		default:
			r.Unknown()
		}
	}
	c.Join(m)
	end := c.Pos()
	if checksums {
		fr.Stored = c.U32("checksum")
		if c.Err() == nil {
			fr.Computed = sum.CRC32C(all[:end])
		}
	}
	fr.size = c.Pos()
	return h, fr
}

// parsePair reads a FileMetadataPairPB: key (1), value (2).
func parsePair(r *pb.Reader, name string) (m MetaPair) {
	s := r.Message(name)
	for r := pb.NewReader(s); r.Next(); {
		switch r.Field() {
		case 1:
			m.Key = r.String("key")
		case 2:
			m.Value = append([]byte(nil), r.Bytes("value")...)
		default:
			r.Unknown()
		}
	}
	r.Join(s)
	return m
}

// Tail is magic and length at the end of a footer.
const Tail = MagicLen + 4

// ParseTail reads the last Tail bytes of a file. It returns the version, which the magic states, and the size of the
// footer's message in bytes.
func ParseTail(c *wire.Cursor) (version, message int) {
	version = ParseMagic(c)
	return version, ParseLength(c)
}

// Le32 is the little-endian number in the first four bytes of b.
func Le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
