package text

import "stoa/region"

// codesOf are the kinds of findings of a format by name.
func codesOf(name string) []region.CodeDoc {
	rowMismatch := "it has another number of fields, a value is not of its column's type or no UTF-8, or a quote is " +
		"not closed or followed by something else than a separator"
	uncut := "the header's quote or the last one does not end, or a compressed stream is damaged"
	if name == "jsonl" {
		rowMismatch = "it is no JSON object, has a key that the schema does not know, or a value that is not of its " +
			"column's type"
		uncut = "a compressed stream is damaged"
	}
	codes := []region.CodeDoc{
		{Code: name + ".row", Severity: region.Error,
			Help: "A row does not fit: " + rowMismatch + ". The other rows can be read."},
		{Code: name + ".text", Severity: region.Error,
			Help: "The text cannot be cut into rows from here on: " + uncut + "."},
		{Code: name + ".unreadable", Severity: region.Error, Help: "Bytes could not be read from where the file " +
			"is kept, or the file needs something that is not known here, or more than is allowed; the message " +
			"names it."},
	}
	if name == "jsonl" { // whose table of no rows is an empty file
		return codes
	}
	return append(codes, region.CodeDoc{Code: name + ".empty", Severity: region.Error,
		Help: "The file has no bytes, where its header should be at least: it was not written to its end, or " +
			"its content was lost. Of a file without a header (--source-opt header=false) it is no finding."})
}
