package text

import "stoa/region"

// codesOf returns the finding codes of the format name.
func codesOf(name string) []region.CodeDoc {
	rowMismatch := "it has more or fewer fields than the table has columns, a value is not of its column's type " +
		"or not UTF-8, or a quote is not closed or followed by something other than a separator"
	unsplit := "a quote in the header or the last quote is not closed, or a compressed stream is damaged"
	if name == "jsonl" {
		rowMismatch = "it is not a JSON object, has a key that is not in the schema, or a value that is not of its " +
			"column's type"
		unsplit = "a compressed stream is damaged"
	}
	codes := []region.CodeDoc{
		{Code: name + ".row", Severity: region.Error,
			Help: "A row does not fit: " + rowMismatch + ". The other rows can be read."},
		{Code: name + ".text", Severity: region.Error,
			Help: "The text cannot be split into rows from here on: " + unsplit + "."},
		{Code: name + ".unreadable", Severity: region.Error, Help: "The storage failed, or the file uses a feature " +
			"that stoa does not support or exceeds a limit; the message names it."},
	}
	if name == "jsonl" { // a table without rows is an empty file
		return codes
	}
	return append(codes, region.CodeDoc{Code: name + ".empty", Severity: region.Error,
		Help: "The file is empty, without even a header: it was not written completely, or its content was " +
			"lost. With --source-opt header=false an empty file is intact."})
}
