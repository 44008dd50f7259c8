package cfile

import (
	"fmt"
	"strings"

	"stoa/format"
	"stoa/format/cfile/internal/write"
)

// setFile is the object of a set of CFiles that names the others. It is written last.
//
//	{"stoa":"cfile-set","version":1,"id":HEX,"schema":BASE64,"rows":N,"columns":[{"path":…,"file":…},…]}
//
// In version 1 the fields of structs are columns side by side. In version 2 they are structs: each that may be null
// has a column with "holds":"validity" before those of its fields, bools without nulls which say where it is there.
// All that lies in a null struct is null in its own column.
//
// id is made of the contents of all the files, each of which has it in its footer, too, see setKey; sets that
// stoa wrote before it knew ids, and those of plain metadata, have none.
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

	limits format.Limits // what was read of may ask for
	name   string        // of the object it was read from
}

type setColumn struct {
	Path string `json:"path"`
	File string `json:"file"`
	// Present says that the file has no place for nulls, though the schema has: those of a value index.
	Present bool   `json:"present,omitempty"`
	Holds   string `json:"holds,omitempty"` // block.HoldsValidity, of a struct; "": values
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
