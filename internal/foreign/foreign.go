// Package foreign names files that are no tables of a format: those of other programs, and those that stoa itself
// writes beside tables.
package foreign

import (
	"context"
	"errors"
	"io"
	"path"
	"regexp"
	"strings"

	"stoa/format"
	"stoa/store"
)

// records are the files that stoa writes beside tables, by the value of "stoa", their first member.
var records = map[string]string{
	"rescue":              "the report of stoa rescue",
	"migrate":             "the report of stoa migrate",
	"convert-all":         "the record of stoa convert --all, by which --resume continues",
	"convert-all-journal": "the journal of stoa convert --all, by which --resume continues",
	"pieces":              "the journal of an unfinished conversion",
}

var record = regexp.MustCompile(`^\{\s*"stoa":\s*"([a-z-]+)"`)

// Ours says what a file is that begins with head, if stoa itself wrote it and it is no table; "" otherwise. A report in
// text or HTML has no mark of its own: report.json beside it has one.
func Ours(ctx context.Context, tree store.Tree, name string, head []byte) string {
	if strings.HasPrefix(string(head), "STOASEAL") {
		return "a seal (stoa verify --seal compares files with it)"
	}
	if base := path.Base(name); base == "report.txt" || base == "report.html" {
		head = begin(ctx, tree, path.Join(path.Dir(name), "report.json"))
	}
	if m := record.FindSubmatch(head); m != nil {
		return records[string(m[1])]
	}
	return ""
}

// begin returns the first bytes of a file; nil if it cannot be read.
func begin(ctx context.Context, tree store.Tree, name string) []byte {
	if info, err := tree.Stat(ctx, name); err != nil || info.Dir {
		return nil
	}
	src, err := tree.Open(ctx, name)
	if err != nil {
		return nil
	}
	defer src.Close()
	head := make([]byte, 64)
	n, err := src.ReadAt(ctx, head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return head[:n]
}

// Kinds are kinds of files, by magic, that are often mistaken for one of our formats.
var Kinds = []format.Magic{
	{Off: 0, Bytes: "ORC", Name: "an ORC file"},
	{Off: 0, Bytes: "Obj\x01", Name: "an Avro data file"},
	{Off: 0, Bytes: "SEQ", Name: "a Hadoop sequence file"},
	{Off: 0, Bytes: "RCF", Name: "an RCFile"},
	{Off: 0, Bytes: "FEA1", Name: "a Feather V1 file"},
	{Off: 0, Bytes: "SQLite format 3\x00", Name: "an SQLite database"},
	{Off: 0, Bytes: "DUCK", Name: "a DuckDB database"},
	{Off: 8, Bytes: "DUCK", Name: "a DuckDB database"},
	{Off: 0, Bytes: "\x89HDF\r\n\x1a\n", Name: "an HDF5 file"},
	{Off: 0, Bytes: "CDF\x01", Name: "a NetCDF file"},
	{Off: 0, Bytes: "PK\x03\x04", Name: "a ZIP archive"},
	{Off: 0, Bytes: "\x28\xb5\x2f\xfd", Name: "a Zstandard-compressed file"},
	{Off: 0, Bytes: "\x1f\x8b", Name: "a gzip-compressed file"},
	{Off: 0, Bytes: "BZh", Name: "a bzip2-compressed file"},
	{Off: 0, Bytes: "\xfd7zXZ\x00", Name: "an xz-compressed file"},
	{Off: 257, Bytes: "ustar", Name: "a tar archive"},
	{Off: 0, Bytes: "%PDF", Name: "a PDF document"},
	{Off: 0, Bytes: "\x7fELF", Name: "a program"},
	{Off: 0, Bytes: "\x89PNG", Name: "a PNG image"},
}
