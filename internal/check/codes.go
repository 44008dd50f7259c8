package check

import "stoa/region"

// FrontCodes are the kinds of findings that belong to no format.
var FrontCodes = []region.CodeDoc{
	{Code: "dir.below", Severity: region.Warning, Help: "A directory of files was read as one table, but files in a " +
		"subdirectory were not. If they belong to the table, name them, or read them with a pattern such as " +
		"DIR/*/*.csv."},
	{Code: "dir.file.unknown", Severity: region.Note, Help: "A file in a verified directory is in no format that " +
		"stoa knows. It may belong to something else, or have lost both its beginning and its end; stoa verify " +
		"--from FORMAT then reports its damage."},
	{Code: "dir.foreign", Severity: region.Note, Help: "A file or directory inside a table does not belong to it: " +
		"nothing in the table refers to it, and its name is not one that the table's system uses. It may have been " +
		"copied to the wrong place, or the reference to it is lost; it was verified separately."},
	{Code: "dir.left.out", Severity: region.Warning, Help: "A directory of files was read as one table, and a file " +
		"in no known format was left out, or one that the directory's manifest does not list. If a file in no known " +
		"format belongs to the table, it is damaged beyond recognition; stoa verify " +
		"--from FORMAT then reports its damage."},
	{Code: "dir.leftover", Severity: region.Note, Help: "An interrupted run of stoa left an unfinished file or " +
		"directory, to which nothing refers. It can be removed when no stoa is running; the next run that writes to " +
		"the same name removes it. If it belongs to no snapshot or version of a table of Iceberg or Delta, stoa " +
		"clean removes it."},
	{Code: "dir.odd", Severity: region.Warning, Help: "An entry of a directory is not a file: a named pipe, a " +
		"socket, a device, a dangling or circular link, or a link to a parent directory. It is not opened, because " +
		"reading it might never end. If a link led to a file of the table, that file is missing; a pipe is read if " +
		"it is named explicitly."},
	{Code: "dir.too.deep", Severity: region.Warning, Help: "Directories are nested so deeply that the innermost were " +
		"not examined."},
	{Code: "dir.unlisted", Severity: region.Warning, Help: "The directory of a table could not be listed. The files " +
		"that the table's metadata names were read; whether there are others, which would be reported as " +
		"dir.part.unread, is unknown."},
	{Code: "dir.part.missing", Severity: region.Error, Help: "Files named part-00000, part-00001 and so on, the " +
		"names that stoa gives the files of a divided table, have a gap in their numbers: the rows of the missing " +
		"file are missing. Files missing after the last one are noticed only if a manifest lists them. If the " +
		"files are not such a table, " +
		"rename them. Among files written by Spark, named part-00000-…-c000.EXT, one is missing if a later one of " +
		"the same task exists, if there is a checksum file of Hadoop's local file system for it (.NAME.crc), or if " +
		"_SUCCESS lists it. A backup has at least one file, even without rows."},
	{Code: "dir.part.other", Severity: region.Error, Help: "A file among those of a backup, or read with them, " +
		"belongs to another job or another backup: its rows are not the backup's, or are read twice. Read one " +
		"backup, which is one directory with a backup's metadata."},
	{Code: "dir.part.twice", Severity: region.Error, Help: "Two files of a backup have the same bytes. No key is in " +
		"two files of a backup, so one is a copy, and its rows are read twice."},
	{Code: "dir.part.unread", Severity: region.Error, Help: "A file in the directory of a table holds data of the " +
		"table's own format, and the table's metadata does not name it: it is of another table, or the metadata is " +
		"older than the file. Its rows are not among those of the table. Files in no known format and hidden files " +
		"are not reported."},
	{Code: "dir.part.unknown", Severity: region.Note, Help: "The files of a directory have names used by Spark and " +
		"many backup jobs, and nothing in it records how many there should be: tasks without rows write none. If a " +
		"file was removed without a trace, that cannot be noticed; compare the number of rows with the source."},
	{Code: "file.name.duplicate", Severity: region.Warning, Help: "Two columns, or two fields of a struct, have the " +
		"same name. The format allows that, but such a name cannot select a column, and formats that identify " +
		"columns only by name, such as JSON, refuse the table. If no checksum covers the names, one of them may have " +
		"been damaged."},
	{Code: "file.name.utf8", Severity: region.Error, Help: "The name of a column, or of a field in it, is not UTF-8, " +
		"as every format requires: it was damaged, and the original is unknown. With --damaged skip-rows, and with " +
		"stoa recover, the rows are read; in output written from them each byte of the name that is not UTF-8 is " +
		"replaced by \\x and two hexadecimal digits."},
	{Code: "file.nested", Severity: region.Error, Help: "The columns in which a nested field is stored can each be " +
		"decoded, but do not fit together: their levels or lengths belong to different lists, or are impossible. " +
		"Reading these rows is an error."},
	{Code: "file.unchecked", Severity: region.Note, Help: "The file, or some of its columns, has no checksums: its " +
		"format has none, its writer omitted them, or they do not cover the headers. The structure was checked and " +
		"the values were decoded, but a change that still decodes cannot be noticed. A seal (stoa seal) has " +
		"checksums that detect such changes."},
	{Code: "file.unreadable", Severity: region.Error, Help: "The file could not be read to its end, and its format " +
		"has no more specific code. The position and the message give the details."},
	{Code: "output.names.utf8", Severity: region.Error, Help: "The name of a column, or of a field in it, was not " +
		"UTF-8, and such names are never written: each byte that is not UTF-8 was replaced by \\x and two " +
		"hexadecimal digits."},
	{Code: "output.rows.sum", Severity: region.Error, Help: "After recovery, the rows returned and those reported as " +
		"lost do not add up to the rows that the table declares, or that recovery found: rows are missing without a " +
		"report, or there are too many. Counts in the file may contradict its data; if nothing else was reported, " +
		"this is a bug in stoa. The output has the rows that were returned."},
	{Code: "output.rows.undeclared", Severity: region.Error, Help: "A file was read or recovered although the part " +
		"of it that declares its number of rows is damaged or missing. The rows returned and those reported as lost " +
		"may not be all: the number of missing rows is unknown."},
	{Code: "output.values.utf8", Severity: region.Error, Help: "Strings that are not UTF-8 were written to a text " +
		"format (JSON lines, CSV, TSV), which cannot store them: U+FFFD replaces each invalid byte. The column and " +
		"the first rows of the output are named. A format with binary columns can store them."},
}
