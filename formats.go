package stoa

import (
	"stoa/format"
	"stoa/format/carbon"
	"stoa/format/cfile"
	"stoa/format/ipc"
	"stoa/format/kudu"
	"stoa/format/parquet"
	"stoa/format/redfile"
	"stoa/format/text"
	"stoa/format/trevni"
)

// Formats are the formats in the order in which they are probed.
var Formats = []format.Format{
	kudu.Format,
	kudu.WALFormat,
	kudu.MetadataFormat,
	cfile.Format,
	carbon.Format,
	ipc.Format,
	redfile.Format,
	trevni.Format,
	trevni.AvroFormat,
	text.JSONL,
	text.CSV,
	text.TSV,
	parquet.Format,
}
