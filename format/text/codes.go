package text

import "stoa/region"

// codesOf are the kinds of findings of a format, by name.
func codesOf(name string) []region.CodeDoc {
	codes := []region.CodeDoc{
		{Code: name + ".row", Severity: region.Error, Help: "A row does not fit: it has another number of fields, or a value is not of its column's type. The other rows can be read."},
		{Code: name + ".text", Severity: region.Error, Help: "The text cannot be cut into rows from here on: a quote that does not end, bytes that are no UTF-8, a compressed stream that is damaged."},
		{Code: name + ".unreadable", Severity: region.Error, Help: "Bytes could not be read from where the file is kept, or the file needs something that is not known here; the message names it."},
	}
	if name == "jsonl" { // whose table of no rows is an empty file
		return codes
	}
	return append(codes, region.CodeDoc{Code: name + ".empty", Severity: region.Error, Help: "The file has no bytes, where its header should be at least: it was not written to its end, or its content was lost. Of a file without a header (--source-opt header=false) it is no finding."})
}
