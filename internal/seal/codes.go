package seal

import "stoa/region"

// Codes are the findings about a seal and about sealed files. The code for a Difference is "seal." followed by its
// What.
var Codes = []region.CodeDoc{
	{Code: "seal.changed", Severity: region.Error, Help: "Bytes of a file differ from the sealed ones; the span is " +
		"exact to 64 KiB. If the seal has parity, recover --seal restores them."},
	{Code: "seal.missing", Severity: region.Error, Help: "A file that was sealed is missing."},
	{Code: "seal.added", Severity: region.Warning, Help: "A file did not exist when the directory was sealed."},
	{Code: "seal.cut", Severity: region.Error, Help: "A file is shorter than when it was sealed."},
	{Code: "seal.grown", Severity: region.Error, Help: "A file is longer than when it was sealed: bytes were " +
		"appended."},
	{Code: "seal.other", Severity: region.Error, Help: "At least half of a file's blocks differ from the sealed " +
		"ones: it is another file with the same name, or an older or newer version."},
	{Code: "seal.swapped", Severity: region.Error, Help: "A file has the contents that the seal records under " +
		"another name: files were exchanged, or one was copied over the other."},
	{Code: "seal.kind", Severity: region.Error, Help: "A file, link or pipe has become something else, or a link has " +
		"another target."},
	{Code: "seal.unknown", Severity: region.Error, Help: "The seal is damaged and has lost checksums of a file: " +
		"whether those blocks have changed is unknown."},
	{Code: "seal.unread", Severity: region.Error, Help: "A file that was sealed cannot be read."},
	{Code: "seal.damaged", Severity: region.Error, Help: "A part of the seal itself is damaged. Checksums are stored " +
		"twice, so files can usually still be verified; make a new seal of files that are intact."},
	{Code: "seal.unsound", Severity: region.Note, Help: "A table could not be read when it was sealed. Its bytes are " +
		"compared with the sealed ones, but these were damaged already, and the seal has no checksum of its rows."},
	{Code: "seal.rows", Severity: region.Error, Help: "A table does not have the rows that were sealed, or " +
		"cannot be read; the message names the columns whose values differ."},
}
