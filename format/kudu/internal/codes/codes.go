package codes

import (
	"errors"

	"stoa/fault"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/check"
	"stoa/region"
)

// fsCodes are the findings about a server's directories and the files in them, sorted by code.
var fsCodes = check.Codes{
	{Code: "kudu.block.missing", Severity: region.Error, Help: "A superblock names a block that no data " +
		"directory holds. The column or the deltas in it are lost."},
	{Code: "kudu.block.truncated", Severity: region.Error, Help: "A superblock names a block that extends past the " +
		"end of its container's data file."},
	{Code: "kudu.block.twice", Severity: region.Warning,
		Help: "Two containers hold a block with the same id. The one that agrees with the superblock is read. If " +
			"several do, and differ, the block is lost."},
	{Code: "kudu.cmeta.damaged", Severity: region.Error,
		Help: "The consensus metadata of a tablet is damaged or gone. It holds no rows: none are lost."},
	{Code: "kudu.container.damaged", Severity: region.Error,
		Help: "The metadata of a log container is damaged. Blocks whose records are intact are read."},
	{Code: "kudu.container.incomplete", Severity: region.Note,
		Help: "The server stopped while it was creating a container. The container is empty: nothing is lost."},
	{Code: "kudu.container.missing", Severity: region.Error, Help: "One of the two files of a log container is " +
		"missing. Without .metadata the blocks can be found only by carving; without .data they are lost."},
	{Code: "kudu.container.overlap", Severity: region.Error,
		Help: "Two live blocks of a container claim the same bytes. At least one of the records is wrong."},
	{Code: "kudu.container.record", Severity: region.Error, Help: "A record of a container's metadata is " +
		"damaged or contradicts earlier records. Which block it described is unknown."},
	{Code: "kudu.container.torn", Severity: region.Note, Help: "The metadata of a container ends in an incomplete " +
		"record, as a crash leaves it. Kudu truncates it."},
	{Code: "kudu.container.truncated", Severity: region.Error, Help: "Blocks of a container extend past the end of " +
		"its data file. Those that a superblock names are lost."},
	{Code: "kudu.datadir.damaged", Severity: region.Error, Help: "The file block_manager_instance of a data " +
		"directory cannot be read. The directory's position among the others is inferred, if it can be."},
	{Code: "kudu.datadir.foreign", Severity: region.Error, Help: "A data directory is another server's: its UUID is " +
		"in no superblock, and in no list of the server's data directories. Its blocks are not read as the server's."},
	{Code: "kudu.datadir.stray", Severity: region.Warning, Help: "A file block_manager_instance lies in a directory " +
		"without blocks: it was copied or created there by mistake. It is ignored; blocks are read from the data " +
		"directories around it."},
	{Code: "kudu.datadir.missing", Severity: region.Error, Help: "The data directories list another data directory, " +
		"which was not given. Its blocks are lost unless it is given as well."},
	{Code: "kudu.instance.damaged", Severity: region.Error, Help: "The file that records which server a directory " +
		"belongs to is damaged. It has no rows: none are lost."},
	{Code: "kudu.instance.missing", Severity: region.Warning, Help: "A directory looks like one of Kudu's, but has " +
		"no file that records which server it belongs to."},
	{Code: "kudu.instance.other", Severity: region.Error,
		Help: "The directories belong to different servers. They must not be mixed."},
	{Code: "kudu.layout.missing", Severity: region.Error, Help: "A directory that every server has was not found: " +
		"the one with superblocks, or any data directory."},
	{Code: "kudu.superblock.damaged", Severity: region.Error, Help: "The superblock of a tablet cannot be read: it " +
		"is unknown which blocks belong to it. The blocks can be read if you give the schema: --schema FILE."},
	{Code: "kudu.superblock.missing", Severity: region.Error, Help: "A tablet has a log or consensus metadata, but " +
		"no superblock: it is unknown which blocks belong to it, or which table it belongs to. The blocks can be " +
		"read if you give the schema: --schema FILE."},
	{Code: "kudu.superblock.odd", Severity: region.Error, Help: "A superblock can be read but is suspect: a checksum " +
		"does not match, bytes follow its record, or it is another tablet's. Its content may be wrong."},
	{Code: "kudu.tablet.unfinished", Severity: region.Warning,
		Help: "A tablet was being copied from another server, or deleted, or its state is not one of Kudu's. Only " +
			"part of it may be here."},
}

// MaxAlike is the number of findings with the same code that are kept for one container or log; the rest are counted.
const MaxAlike = 20

// Finding makes a finding of an error; part names the tablet, container or data directory. For a torn record the cause
// is left out of the message: the reason already says it.
func Finding(code string, err error, part string) region.Finding {
	if e := (*fault.Error)(nil); errors.As(err, &e) && errors.Is(e, pbc.ErrTorn) {
		plain := *e
		plain.Cause, err = nil, &plain
	}
	return Codes.Of(code, err, part)
}
