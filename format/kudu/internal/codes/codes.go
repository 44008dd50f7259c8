package codes

import (
	"errors"

	"stoa/fault"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/check"
	"stoa/region"
)

// fsCodes are the kinds of findings about how a directory is laid out, by name.
var fsCodes = check.Codes{
	{Code: "kudu.block.missing", Severity: region.Error, Help: "A superblock names a block that no data " +
		"directory holds. The column, or the changes, that it held are lost."},
	{Code: "kudu.block.truncated", Severity: region.Error,
		Help: "A superblock names a block that lies partly or wholly after the end of its container."},
	{Code: "kudu.block.twice", Severity: region.Warning,
		Help: "Two containers hold a block of the same number. The first one that is whole is read."},
	{Code: "kudu.cmeta.damaged", Severity: region.Error,
		Help: "The consensus metadata of a tablet is damaged. It holds no rows: none is lost."},
	{Code: "kudu.container.damaged", Severity: region.Error,
		Help: "A log container cannot be read as it should be. Blocks whose records are whole are read."},
	{Code: "kudu.container.incomplete", Severity: region.Note,
		Help: "The server stopped while it made a container. It holds nothing."},
	{Code: "kudu.container.missing", Severity: region.Error, Help: "One of the two files of a log container is " +
		"missing. Without .metadata the blocks can only be found by carving; without .data they are lost."},
	{Code: "kudu.container.overlap", Severity: region.Error,
		Help: "Two live blocks of a container claim the same bytes. At least one of the records is wrong."},
	{Code: "kudu.container.record", Severity: region.Error, Help: "A record of a container's metadata is " +
		"damaged or contradicts those before it. Which block it was about is not known."},
	{Code: "kudu.container.torn", Severity: region.Note, Help: "The metadata of a container ends in a record " +
		"that was not written to its end: what a crash leaves. Kudu cuts it off."},
	{Code: "kudu.container.truncated", Severity: region.Error,
		Help: "Blocks of a container lie after the end of its data file. If a superblock names them, they are lost."},
	{Code: "kudu.datadir.damaged", Severity: region.Error, Help: "The file block_manager_instance of a data " +
		"directory cannot be read. Its place among the others is guessed."},
	{Code: "kudu.datadir.stray", Severity: region.Warning, Help: "A file block_manager_instance lies where no blocks " +
		"do: one that was copied or made by mistake. It says nothing of a server and is not used; blocks are read " +
		"from the data directories around it."},
	{Code: "kudu.datadir.missing", Severity: region.Error, Help: "The data directories name another one, which " +
		"is not among those that were given. Its blocks are lost, unless it is given, too."},
	{Code: "kudu.instance.damaged", Severity: region.Error,
		Help: "The file that says to which server a directory belongs is damaged. It holds no rows: none is lost."},
	{Code: "kudu.instance.missing", Severity: region.Warning,
		Help: "A directory looks like one of Kudu's and does not say to which server it belongs."},
	{Code: "kudu.instance.other", Severity: region.Error,
		Help: "The directories belong to different servers. They must not be mixed."},
	{Code: "kudu.layout.missing", Severity: region.Error,
		Help: "A directory that every server has was not found: the one of superblocks, or any of data."},
	{Code: "kudu.superblock.damaged", Severity: region.Error, Help: "The superblock of a tablet cannot be read: " +
		"nothing says which blocks are its own. Its blocks can be read with a schema that is given: --schema FILE."},
	{Code: "kudu.superblock.missing", Severity: region.Error, Help: "A tablet has a log or consensus metadata, " +
		"and no superblock: nothing says which blocks are its own, nor to which table it belongs. Its blocks " +
		"can be read with a schema that is given: --schema FILE."},
	{Code: "kudu.superblock.odd", Severity: region.Error, Help: "A superblock could be read, and is not as it " +
		"should be: a checksum does not match, or it is of another tablet. What it says may be wrong."},
	{Code: "kudu.tablet.unfinished", Severity: region.Warning,
		Help: "A tablet was being copied from another server, or deleted. What is there may be only part of it."},
}

// MaxAlike is how many findings of one kind are kept of one object.
const MaxAlike = 20

// Finding is an error as a finding. Of what a crash tore the reason says all.
func Finding(code string, err error, part string) region.Finding {
	if e := (*fault.Error)(nil); errors.As(err, &e) && errors.Is(e, pbc.ErrTorn) {
		whole := *e
		whole.Cause, err = nil, &whole
	}
	return Codes.Of(code, err, part)
}
