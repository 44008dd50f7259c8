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

// setFile is the object that lists the files of a set of CFiles. It is written last.
//
//	{"stoa":"cfile-set","version":1,"id":HEX,"schema":BASE64,"rows":N,"columns":[{"path":…,"file":…},…]}
//
// In version 1 the fields of structs are columns of the table. In version 2 structs are kept: each nullable struct has
// a column with "holds":"validity" before the columns of its fields. That column has bools, none null, which are true
// where the struct is not null. All columns inside a null struct are null in that row.
//
// id is a digest of the contents of all files. Each file also has it in its footer, see block.SetKey. Sets that older
// versions of stoa wrote, and sets with plain metadata, have no id.
//
// crc32c, the last member, is the CRC-32C of all bytes before its name. Sets that older versions of stoa wrote have
// none. A set without an id has the size and the SHA-256 of each file instead, because its files have no id either.
//
// schema is an encapsulated Arrow IPC schema message: the schema of the table that was written.
// The columns are in the schema's order, depth first; path is dotted.
const setFile = "table.json"

// setKind is the value of "stoa" in setFile.
const setKind = "cfile-set"

// withStructs is the first version of a setFile with structs.
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

	unproven bool          // the JSON was parsed completely, but Sum does not match
	limits   format.Limits // for decoding Schema
	name     string        // name of the object it was read from
}

type setColumn struct {
	Path string `json:"path"`
	File string `json:"file"`
	// Present is true if the values of the file are not nullable although the schema's field is, which is so in files
	// with a value index.
	Present bool   `json:"present,omitempty"`
	Holds   string `json:"holds,omitempty"` // block.HoldsValidity, of a struct; "": values
	// Size of the file in bytes, and its SHA-256, in a set without id. A CRC-32C of the file would prove nothing: each
	// block is followed by its own CRC-32C, so the checksum of the whole file does not depend on the contents of the
	// blocks.
	Size int64  `json:"size,omitempty"`
	Sum  string `json:"sha256,omitempty"`
	// Marks of the pieces of the file, see marker. Sets that older versions of stoa wrote have none.
	Marks []byte `json:"marks,omitempty"` // base64 in JSON
}

const sumMember = `"crc32c"`

// sealed returns the JSON of a set, with its checksum.
func (t *fileSet) sealed() ([]byte, error) {
	body, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return nil, err
	}
	body = append(bytes.TrimSuffix(body, []byte("\n}")), ",\n "...)
	return fmt.Appendf(body, "%s: \"%08x\"\n}\n", sumMember, sum.CRC32C(body)), nil
}

// checkSum compares the bytes of a set with its checksum, if it has one.
func (t *fileSet) checkSum(b []byte, at fault.Span) error {
	if t.Sum == "" {
		return nil
	}
	computed := fmt.Sprintf("%08x", sum.CRC32C(b[:max(0, bytes.LastIndex(b, []byte(sumMember)))]))
	if t.Sum == computed {
		return nil
	}
	t.unproven = true
	return fault.Corruptf(at, "crc32c", "expected %s, computed %s", t.Sum, computed)
}

// checkBytes compares the SHA-256 of a column's file, tg, with the one in the set, if there is one.
func (c *setColumn) checkBytes(ctx context.Context, tg format.Target) error {
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
		return fault.Corruptf(fault.Span{Object: tg.Name, Len: src.Size()}, "", "expected SHA-256 %s of the file of "+
			"column %q by %s, computed %s: the file is damaged, or another table's", c.Sum, c.Path, setFile, computed)
	}
	return nil
}

// fileNames returns the names of the columns' files: the path of the column, with bytes that are unsafe in file names
// escaped as %XX. Names that are equal or differ only in case, which some file systems ignore, get a number.
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

// safeName escapes all bytes except letters, digits, '_', '-' and dots that are not the first byte, and truncates after
// 180 bytes.
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
