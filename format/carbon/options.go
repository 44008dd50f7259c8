package carbon

import (
	"stoa/format/carbon/internal/change"
	"stoa/format/carbon/internal/table"
)

// Words of WriteOptions and ReadOptions.
type (
	Compress    = change.Compress
	Timestamps  = change.Timestamps
	Nulls       = change.Nulls
	Measures    = change.Measures
	Granularity = table.Granularity
)

const (
	CompressSnappy Compress = "snappy" // the default
	CompressZstd   Compress = "zstd"
	CompressGzip   Compress = "gzip"

	TimestampsExact    Timestamps = "exact" // parts of a millisecond are refused; the default
	TimestampsTruncate Timestamps = "truncate"

	NullsExact Nulls = "exact" // what CarbonData reads as null, as a list of one null, is refused; the default
	NullsMerge Nulls = "merge"

	MeasuresAny Measures = "any" // numbers are small where every release reads them; the default
	Measures10  Measures = "1.0" // or wherever 1.0 does, of which 1.2 to 1.6 misread some

	GranularitySecond Granularity = "SECOND" // the default
	GranularityMinute Granularity = "MINUTE"
	GranularityHour   Granularity = "HOUR"
	GranularityDay    Granularity = "DAY"
)

// WriteOptions are the options of writing, for stoa.CreateOptions.Typed and stoa.AppendOptions.Typed. The zero
// value of each is the default.
type WriteOptions struct {
	Compression              Compress   // of all pages
	SortColumns              []string   // rows are sorted by these columns, which then are dimensions
	InvertedIndex            []string   // sort columns whose pages are sorted by themselves, with row ids
	LongStrings              []string   // strings that may have more than 32,765 bytes
	LocalDictionary          *bool      // strings are codes of a dictionary as long as there are few; nil: true
	LocalDictionaryThreshold int        // how many strings a local dictionary may have; 0: 10000
	PageRows                 int        // rows of a page; 0: 32000
	PageSize                 int        // MiB of raw values after which a page ends; 0: 64
	BlockletSize             int64      // MiB of encoded pages after which a blocklet ends; 0: 64
	BlockSize                int64      // MiB after which, in a directory, a new data file begins; 0: 1024
	Memory                   int64      // bytes of rows that are sorted in memory; 0: 256 MiB
	Timestamps               Timestamps // what is done with parts of a millisecond
	Nulls                    Nulls      // what is done with what CarbonData reads as null
	Version                  int        // format of the data files; 0: 3, in a table that of its last segment
	BlockletRows             int        // formats 1 and 2: rows of a blocklet; 0: 120000
	Measures                 Measures   // formats 1 and 2: how small numbers are made
	WrittenBy                string     // who wrote it, kept in the footer; "": stoa
}

// Strings are the options as --opt has them.
func (o WriteOptions) Strings() map[string]string {
	s := change.Options(o)
	return change.WriteTable.Strings(&s)
}

// Formats are those that have the options.
func (WriteOptions) Formats() []string { return []string{"carbon"} }

// ReadOptions are the options of reading, for stoa.OpenOptions.Typed. The zero value of each is the default.
type ReadOptions struct {
	Segment         []string    // only these segments, also such as do not count
	Segments        []string    // likewise; "all" alone: every one whose files are there
	Bucket          *int        // only this bucket; nil: all
	Properties      string      // a file: the carbon.properties of the writer
	BlockletSize    int32       // formats 1 and 2: carbon.blocklet.size of the writer; 0: it is found out
	CutoffTimestamp string      // carbon.cutOffTimestamp of the writer, as yyyy-MM-dd HH:mm:ss
	TimeGranularity Granularity // carbon.timegranularity of the writer
	Timezone        string      // of texts without one: the cut-off, timestamps in names of partitions; "": UTC
	Positions       bool        // each row has the columns stoa_file and stoa_row
	Deleted         bool        // rows that are deleted are shown, too
}

// Strings are the options as --source-opt has them.
func (o ReadOptions) Strings() map[string]string {
	s := table.Options(o)
	return table.ReadTable.Strings(&s)
}

// Formats are those that have the options.
func (ReadOptions) Formats() []string { return []string{"carbon"} }
