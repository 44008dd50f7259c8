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

// Formats are the formats of the library, in the order in which they are probed. The command adds others, such as
// Iceberg and Delta: see cmd/stoa/internal/catalogue.
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
