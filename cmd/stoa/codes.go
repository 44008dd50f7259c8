package main

import (
	"cmp"
	"slices"

	"stoa/format/cfile"
	"stoa/region"
)

// codeDocs are all codes of findings, sorted.
func codeDocs() []codeDoc {
	out := slices.Clone(otherCodes)
	for _, c := range cfile.Codes {
		out = append(out, codeDoc{c.Code, c.Severity.String(), c.Help})
	}
	for _, name := range []string{"csv", "tsv", "jsonl"} {
		for _, c := range textCodes {
			out = append(out, codeDoc{name + c.Code, c.Severity, c.Means})
		}
	}
	slices.SortFunc(out, func(x, y codeDoc) int { return cmp.Compare(x.Code, y.Code) })
	return out
}

var (
	anError = region.Error.String()
	aNote   = region.Note.String()
	warning = region.Warning.String()
)

// otherCodes are those of the formats that have no table of their own.
var otherCodes = []codeDoc{
	{"file.unreadable", anError, "The file could not be read to its end, and its format has no closer word for why. The place and the message say what was met."},
	{"arrow.open", anError, "The schema or the footer cannot be read, so nothing of the file can."},
	{"arrow.batch", anError, "A record batch or a dictionary cannot be read: its rows are lost. Arrow files have no checksums; this is what contradicts the format."},
	{"arrow.layout", warning, "The messages of the file do not follow each other as they should, or bytes lie between them that no message claims."},
	{"arrow.unreadable", anError, "Bytes could not be read from where the file is kept, or need something that is not known here; the message names it."},
	{"parquet.footer", anError, "The footer cannot be read, so nothing of the file can."},
	{"parquet.page", anError, "A page, or its header, cannot be read."},
	{"parquet.page.checksum", anError, "The checksum of a page does not fit its bytes."},
	{"parquet.column", anError, "A column of a row group cannot be read; the rows of the group are lost in that column."},
	{"parquet.layout", aNote, "Bytes that nothing in the file points to. Some writers leave such bytes; no rows are lost by them."},
	{"parquet.unreadable", anError, "Bytes could not be read from where the file is kept, or need something that is not known here; the message names it."},
}

// textCodes are those of csv, tsv and jsonl.
var textCodes = []codeDoc{
	{".row", anError, "A row does not fit: it has another number of fields, or a value is not of its column's type. The other rows can be read."},
	{".text", anError, "The text cannot be cut into rows from here on: a quote that does not end, bytes that are no UTF-8, a compressed stream that is damaged."},
	{".unreadable", anError, "Bytes could not be read from where the file is kept, or the file needs something that is not known here; the message names it."},
}
