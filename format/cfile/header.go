package cfile

import (
	"encoding/binary"

	"stoa/internal/pb"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/wire"
)

// minFile is a header and a footer without messages.
const minFile = 2 * (magicLen + 4)

// part is a section of c that is told as a structure of its own.
func part(c *wire.Cursor, name string, n int) *wire.Cursor {
	if n >= 0 && n <= c.Left() && c.Err() == nil {
		c.Node(region.Struct, c.Pos(), n, name, "")
	}
	return c.Section(name, n)
}

// frame is what stands around the message of a header or footer.
type frame struct {
	size      int    // bytes of the whole structure
	crc, want uint32 // as stored and as computed; both 0 without checksums
}

// magicVersion is 1 or 2, and 0 for bytes that are no magic.
func magicVersion(b []byte) int {
	switch string(b) {
	case magicV1:
		return 1
	case magicV2:
		return 2
	}
	return 0
}

// parseMagic reads the eight bytes of a magic.
func parseMagic(c *wire.Cursor) (version int) {
	b := c.Bytes("magic", magicLen)
	if b == nil {
		return 0
	}
	if version = magicVersion(b); version == 0 {
		c.Fail(c.Pos()-magicLen, magicLen, "magic", "%q is neither %q nor %q: not a CFile", b, magicV1, magicV2)
	}
	return version
}

// parseLength reads the length of a message.
func parseLength(c *wire.Cursor) int {
	n := c.U32("length")
	if n > maxProtobuf {
		c.Fail(c.Pos()-4, 4, "length", "%d bytes, a header or footer has at most %d", n, maxProtobuf)
		return 0
	}
	return int(n)
}

// parseHeader reads the header at the beginning of c:
//
//	magic     8
//	length    u32
//	message   CFileHeaderPB
//	checksum  u32, CRC-32C of all before it; only if the footer's features say so
func parseHeader(c *wire.Cursor, checksums bool) (h Header, fr frame) {
	all := c.Rest()
	h.Version = parseMagic(c)
	n := parseLength(c)
	m := part(c, "message", n)
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
		fr.crc = c.U32("checksum")
		if c.Err() == nil {
			fr.want = sum.CRC32C(all[:end])
		}
	}
	fr.size = c.Pos()
	return h, fr
}

// parsePair reads a FileMetadataPairPB: key (1), value (2).
func parsePair(r *pb.Reader, name string) (m metaPair) {
	s := r.Message(name)
	for r := pb.NewReader(s); r.Next(); {
		switch r.Field() {
		case 1:
			m.key = r.String("key")
		case 2:
			m.value = append([]byte(nil), r.Bytes("value")...)
		default:
			r.Unknown()
		}
	}
	r.Join(s)
	return m
}

// tail is magic and length at the end of a footer.
const tail = magicLen + 4

// parseTail looks at the last bytes of a file. It says how long the footer's message is.
func parseTail(c *wire.Cursor) (version, message int) {
	version = parseMagic(c)
	return version, parseLength(c)
}

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
