package cfile

import "stoa/region"

// Code is a kind of finding of Verify and Recover. Codes never change their meaning.
type Code struct {
	Code     string
	Severity region.Severity
	Help     string
}

// Codes are all kinds of findings, by name. A checksum that is wrong is told once; what it covers is then not looked into.
var Codes = []Code{
	{"cfile.block.checksum", region.Error, "The checksum of a data block does not fit its bytes. Its rows are lost, unless another copy of the file is at hand."},
	{"cfile.block.count", region.Error, "A data block does not have as many rows as the index says, or its null bitmap does not have as many ones as there are values."},
	{"cfile.block.damaged", region.Error, "A data block cannot be decoded: it contradicts its own encoding. In a file without checksums this is how damage shows."},
	{"cfile.block.ordinal", region.Error, "A data block says that it begins at another row than the index says. The block may belong elsewhere."},
	{"cfile.bloom.damaged", region.Error, "A bloom filter cannot be read. Look-ups through it would have to read the rows."},
	{"cfile.coverage.gap", region.Warning, "Bytes that no structure of the file claims. Kudu writes none: a block may have been cut out of the index."},
	{"cfile.coverage.overlap", region.Error, "Bytes that two structures claim. At least one of the pointers is wrong."},
	{"cfile.delta.damaged", region.Error, "A value of a delta file is not a row, a timestamp and a list of changes."},
	{"cfile.delta.order", region.Error, "The changes of a delta file are not in the order of rows, and of timestamps within a row: applying them gives wrong cells."},
	{"cfile.delta.stats", region.Warning, "The statistics of a delta file do not agree with its changes. Kudu skips files by them, so changes may be overlooked."},
	{"cfile.dict.checksum", region.Error, "The checksum of the dictionary does not fit its bytes: all rows that use it are lost."},
	{"cfile.dict.damaged", region.Error, "The dictionary cannot be decoded: all rows that use it are lost."},
	{"cfile.footer.checksum", region.Error, "The checksum of the footer does not fit its bytes. Type, encoding and roots of the indexes may be wrong."},
	{"cfile.footer.damaged", region.Error, "The footer cannot be read: the file is cut, or its end is overwritten. Recover may find the blocks by the index blocks that are left."},
	{"cfile.header.checksum", region.Error, "The checksum of the header does not fit its bytes. The header holds little but the version."},
	{"cfile.header.damaged", region.Error, "The header cannot be read."},
	{"cfile.index.checksum", region.Error, "The checksum of an index block does not fit its bytes. The rows below it cannot be found by this index."},
	{"cfile.index.damaged", region.Error, "An index block cannot be read, or an entry of it points nowhere."},
	{"cfile.index.disagree", region.Error, "The positional and the value index do not list the same data blocks."},
	{"cfile.index.key", region.Error, "A key of the value index does not lie between the last value of the block before and the first one of its own: look-ups miss rows."},
	{"cfile.index.order", region.Error, "The keys of an index fall."},
	{"cfile.int128.range", region.Note, "A value of type int128 has 39 digits. It is kept as it is, but decimal128(38, 0), as which it is shown, strictly has 38."},
	{"cfile.keys.range", region.Warning, "The metadata min_key or max_key is not the key of the first or the last row. Kudu skips rowsets by them."},
	{"cfile.numvalues", region.Error, "The footer's number of values is not that of the blocks."},
	{"cfile.prefix.restarts", region.Warning, "A restart point of a prefix block is not where an entry without a prefix begins. Reading in order does not need them; Kudu's seeks do."},
	{"cfile.read", region.Error, "Bytes of the file could not be read from where it is kept."},
	{"cfile.recovered", region.Note, "Recover found blocks without the help of a sound index."},
	{"cfile.rows.lost", region.Error, "Recover did not find the blocks of these rows: their bytes are damaged, cut off or overwritten."},
	{"cfile.set", region.Error, "The files of a table in a directory do not belong together: one is missing, or has another number of rows."},
	{"cfile.unsupported", region.Error, "The file may be sound, but needs something that is not known here; the message names it."},
	{"cfile.utf8", region.Note, "A value of type string or varchar is not UTF-8. Kudu does not look; the bytes are kept as they are."},
	{"cfile.values.order", region.Error, "The values of a file with a value index fall: look-ups miss rows."},
	{"cfile.version.mixed", region.Note, "Header and footer have the magics of different versions. Kudu reads that, and goes by the header's."},
}

func severityOf(code string) region.Severity {
	for _, c := range Codes {
		if c.Code == code {
			return c.Severity
		}
	}
	return region.Error
}
