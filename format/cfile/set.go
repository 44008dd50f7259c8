package cfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/write"
	"stoa/internal/sum"
)

// setFile is the object of a set of CFiles that names the others. It is written last.
//
//	{"stoa":"cfile-set","version":1,"id":HEX,"schema":BASE64,"rows":N,"columns":[{"path":…,"file":…},…]}
//
// In version 1 the fields of structs are columns side by side. In version 2 they are structs: each that may be null
// has a column with "holds":"validity" before those of its fields, bools without nulls which say where it is there.
// All that lies in a null struct is null in its own column.
//
// id is made of the contents of all the files, each of which has it in its footer, too, see block.SetKey; sets that
// stoa wrote before it knew ids, and those of plain metadata, have none.
//
// crc32c, the last member, is the CRC-32C of all bytes before its name. Sets that stoa wrote before it knew it have
// none. A set without id says of each file how long it is and what its SHA-256 is, as its files do not say whose they
// are.
//
// schema is an encapsulated Arrow IPC schema message: the schema of the table that was written.
// The columns stand in the schema's order, depth first; path is dotted.
const setFile = "table.json"

// setKind is the value of "stoa" in setFile.
const setKind = "cfile-set"

// withStructs is the first version of a setFile whose structs are structs.
const withStructs = 2

// fileSet is the content of setFile.
type fileSet struct {
	Stoa    string      `json:"stoa"`
	Version int         `json:"version"`
	ID      string      `json:"id,omitempty"`
	Schema  []byte      `json:"schema"` // base64 in JSON
	Rows    int64       `json:"rows"`
	Columns []setColumn `json:"columns"`
	Sum     string      `json:"crc32c,omitempty"` // eight hexadecimal digits

	doubted bool          // all of it was read, and is not what Sum is of
	limits  format.Limits // what was read of may ask for
	name    string        // of the object it was read from
}

type setColumn struct {
	Path string `json:"path"`
	File string `json:"file"`
	// Present says that the file has no place for nulls, though the schema has: those of a value index.
	Present bool   `json:"present,omitempty"`
	Holds   string `json:"holds,omitempty"` // block.HoldsValidity, of a struct; "": values
	// How long the file is, and its SHA-256, in a set without id. A CRC-32C would be blind: behind each block stands
	// its own, and so that of the file is the same whatever is in the blocks.
	Size int64  `json:"size,omitempty"`
	Sum  string `json:"sha256,omitempty"`
	// Marks are of the pieces of the file, see marker. Sets that stoa wrote before it knew them have none.
	Marks []byte `json:"marks,omitempty"` // base64 in JSON
}

const sumMember = `"crc32c"`

// sealed is the JSON of a set with its checksum.
func (t *fileSet) sealed() ([]byte, error) {
	body, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return nil, err
	}
	body = append(bytes.TrimSuffix(body, []byte("\n}")), ",\n "...)
	return fmt.Appendf(body, "%s: \"%08x\"\n}\n", sumMember, sum.CRC32C(body)), nil
}

// checkSum holds the bytes of a set against its checksum, if it has one.
func (t *fileSet) checkSum(b []byte, at fault.Span) error {
	if t.Sum == "" {
		return nil
	}
	computed := fmt.Sprintf("%08x", sum.CRC32C(b[:max(0, bytes.LastIndex(b, []byte(sumMember)))]))
	if t.Sum == computed {
		return nil
	}
	t.doubted = true
	return fault.Corruptf(at, "crc32c", "expected %s, computed %s", t.Sum, computed)
}

// same holds all bytes of the file of a column against what the set says of them, if it says anything.
func (c *setColumn) same(ctx context.Context, tg format.Target) error {
	if c.Sum == "" {
		return nil
	}
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return err
	}
	defer src.Close()
	h, b := sha256.New(), make([]byte, min(src.Size(), 256<<10))
	for off := int64(0); off < src.Size(); {
		at := fault.Span{Object: tg.Name, Off: off, Len: min(int64(len(b)), src.Size()-off)}
		if err := format.ReadFull(ctx, src, at, "", b[:at.Len]); err != nil {
			return err
		}
		h.Write(b[:at.Len])
		off = at.End()
	}
	if computed := fmt.Sprintf("%x", h.Sum(nil)); computed != c.Sum {
		return fault.Corruptf(fault.Span{Object: tg.Name, Len: src.Size()}, "", "%s has a file of SHA-256 %s for "+
			"column %q, computed %s: it is damaged, or another table's", setFile, c.Sum, c.Path, computed)
	}
	return nil
}

// fileNames are the names of the columns' files: the path, with what is not safe in a file name escaped as %XX. Names
// that differ only in upper and lower case, which some file systems take for one, and the same names get a number.
func fileNames(leaves []write.Leaf) []string {
	out := make([]string, len(leaves))
	taken := map[string]bool{setFile: true}
	for i, l := range leaves {
		base := safeName(l.Path)
		name := base + ".cfile"
		for n := 2; taken[strings.ToLower(name)]; n++ {
			name = fmt.Sprintf("%s~%d.cfile", base, n)
		}
		taken[strings.ToLower(name)] = true
		out[i] = name
	}
	return out
}

// safeName escapes all but letters, digits, '_', '-' and inner dots, and cuts what is too long.
func safeName(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
		if b.Len() > 180 {
			break
		}
	}
	if b.Len() == 0 {
		return "%"
	}
	return b.String()
}
