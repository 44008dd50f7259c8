package cli

// WordFlag is a flag of its own for a reading option that is often wanted: --at TIME is --source-opt at=TIME.
type WordFlag struct {
	Flag, Key, Value string // value: what the flag without one means
	Usage            string
	Given            string
}

// NewWordFlags are the flags for reading options. Which formats have the option is found out when a source is opened.
func NewWordFlags() []*WordFlag {
	return []*WordFlag{
		{Flag: "at", Key: "at", Usage: "read the table as it was at `TIME`: RFC 3339, or an integer in the " +
			"format's own count (Kudu: a hybrid time)"},
		{Flag: "no-wal", Key: "wal", Value: "false", Usage: "leave out what is only in the write-ahead log"},
		{Flag: "tablet", Key: "tablet", Usage: "read only the tablet with this `ID`"},
		{Flag: "partial", Key: "partial", Value: "true", Usage: "a table of which parts are missing is no error " +
			"(else it is read, but told, with status 3); and what there is is read where history does not reach " +
			"back to --at; nor is an Arrow stream without end mark"},
		{Flag: "live", Key: "live", Value: "true", Usage: "read a directory although a server runs on it"},
		{Flag: "wal-dir", Key: "wal-dir", Usage: "the `DIR` that holds Kudu's wals/, instead of looking for it"},
		{Flag: "data-dirs", Key: "data-dirs", Usage: "the `DIRS` that hold Kudu's data/, separated by commas"},
		{Flag: "meta-dir", Key: "meta-dir",
			Usage: "the `DIR` that holds Kudu's tablet-meta/, instead of looking for it"},
		{Flag: "segment", Key: "segment",
			Usage: "read only the segment with this `N` (also one that does not count), or several: N,N"},
		{Flag: "segments", Key: "segments",
			Usage: "read these segments, `N,N…`; all: every one whose files are there, also compacted and deleted " +
				"ones"},
		{Flag: "bucket", Key: "bucket", Usage: "read only bucket `N` of a bucketed table"},
		{Flag: "carbon-properties", Key: "properties", Usage: "CarbonData's settings are those of this " +
			"carbon.properties `FILE`; a path #TABLE is a table of its store"},
		{Flag: "key-file", Key: "key-file",
			Usage: "the keys of encrypted Parquet are in `FILE`: lines footer KEY, column PATH KEY, key ID KEY"},
		{Flag: "schema", Key: "schema", Usage: "read with the schema in `FILE` (as schema -f json prints it; of " +
			"Parquet and RedFile: another whole file with the same columns), where the source has lost its own " +
			"or, as text, has none (there also itself: \"id: int64, …\")"},
	}
}
