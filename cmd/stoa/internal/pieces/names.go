package pieces

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxFileName is the length, in bytes, of the file names of tables: file systems allow 255, and an extension, a number,
// or the prefix of a temporary file are added to them.
const maxFileName = 180

// FileName turns a table's name into a file name. Of a long name the beginning is kept, and a checksum tells it from
// others with the same beginning.
func FileName(name string) string {
	whole := escaped(name)
	if len(whole) <= maxFileName {
		return whole
	}
	sum := sha256.Sum256([]byte(name))
	for end := range name {
		part := escaped(name[:end])
		if len(part) > maxFileName-9-utf8.UTFMax {
			return fmt.Sprintf("%s-%x", part, sum[:4])
		}
	}
	return fmt.Sprintf("%x", sum[:])
}

// escaped returns a name with characters that a file name cannot contain written as %XX.
func escaped(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c < ' ' || c == 0x7f || strings.IndexByte(`/\%`, c) >= 0, i == 0 && (c == '.' || c == '_'):
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
