package carbon

import (
	"stoa/format/carbon/internal/change"
	"stoa/format/carbon/internal/table"
)

// Values of WriteOptions and ReadOptions.
type (
	Compress    = change.Compress
	Timestamps  = change.Timestamps
	Nulls       = change.Nulls
	Measures    = change.Measures
	Layout      = change.Layout
	Granularity = table.Granularity
	Calendar    = table.Calendar
)

// Values of the types above; "" is the default.
const (
	CompressSnappy Compress = "snappy" // the default
	CompressZstd   Compress = "zstd"
	CompressGzip   Compress = "gzip"

	TimestampsExact    Timestamps = "exact"    // fractions of a millisecond are an error; the default
	TimestampsTruncate Timestamps = "truncate" // fractions of a millisecond are dropped

	NullsExact Nulls = "exact" // values that would be read as null (a list of one null) are an error; the default
	NullsMerge Nulls = "merge" // such values are written, and read as null

	MeasuresAny Measures = "any" // numbers are encoded so that every release reads them; the default
	Measures10  Measures = "1.0" // encoded as by release 1.0; releases 1.2 to 1.6 misread some of these

	LayoutColumns Layout = "columns" // the default
	LayoutRows    Layout = "rows"    // a finished streaming segment

	GranularitySecond Granularity = "SECOND" // the default
	GranularityMinute Granularity = "MINUTE"
	GranularityHour   Granularity = "HOUR"
	GranularityDay    Granularity = "DAY"

	CalendarHybrid    Calendar = "hybrid"    // Java's: Julian before 15 October 1582
	CalendarProleptic Calendar = "proleptic" // Gregorian throughout
)

// WriteOptions are the options of writing, for stoa.CreateOptions.Typed and stoa.AppendOptions.Typed. The zero
// value of each is the default.
type WriteOptions struct {
	Compression              Compress   // of all pages
	SortColumns              []string   // rows are sorted by these columns, which then are dimensions
	InvertedIndex            []string   // sort columns whose pages are each sorted, with row ids
	LongStrings              []string   // strings that may have more than 32,765 bytes
	LocalDictionary          *bool      // strings are stored as dictionary codes while there are few; nil: true
	LocalDictionaryThreshold int        // largest number of strings in a local dictionary; 0: 10000
	PageRows                 int        // rows of a page; 0: 32000
	PageSize                 int        // MiB of raw values after which a page ends; 0: 64
	BlockletSize             int64      // MiB of encoded pages after which a blocklet ends; 0: 64
	BlockSize                int64      // MiB after which, in a directory, a new data file begins; 0: 1024
	Memory                   int64      // bytes of rows that are sorted in memory; 0: 256 MiB
	Timestamps               Timestamps // fractions of a millisecond
	Nulls                    Nulls      // values that CarbonData reads as null
	Version                  int        // format of the data files, 1 to 3; 0: 3, in a table that of the last segment
	BlockletRows             int        // formats 1 and 2: rows of a blocklet; 0: 120000
	Measures                 Measures   // formats 1 and 2: encoding of numbers
	Layout                   Layout     // of a load: pages of columns, or rows in a finished streaming segment
	WrittenBy                string     // the writer's name in the footer; "": stoa
}

// Strings are the options as strings, as in --opt.
func (o WriteOptions) Strings() map[string]string {
	s := change.Options(o)
	return change.WriteTable.Strings(&s)
}

// Formats are the formats that the options are for.
func (WriteOptions) Formats() []string { return []string{"carbon"} }

// ReadOptions are the options of reading, for stoa.OpenOptions.Typed. The zero value of each is the default.
type ReadOptions struct {
	Segment         []string    // only these segments, even if compacted or deleted
	Segments        []string    // likewise; "all" alone: every segment whose files exist
	Bucket          *int        // only this bucket; nil: all
	Properties      string      // a file: the carbon.properties of the writer
	BlockletSize    int32       // formats 1 and 2: carbon.blocklet.size of the writer; 0: derived from the pages
	CutoffTimestamp string      // carbon.cutOffTimestamp of the writer, as yyyy-MM-dd HH:mm:ss
	TimeGranularity Granularity // carbon.timegranularity of the writer
	Timezone        string      // of texts that have none: the cut-off, timestamps in partition names; "": UTC
	Positions       bool        // each row has the columns stoa_file and stoa_row
	Deleted         bool        // deleted rows are included
	External        bool        // locations outside of the named place are followed
	Calendar        Calendar    // of dates and timestamps before 15 October 1582; "": that of the writer
	Since           string      // a segment or a time: what changed after it, with the column stoa_change
	At              string      // a segment or a time: the rows of then
}

// Strings are the options as strings, as in --source-opt.
func (o ReadOptions) Strings() map[string]string {
	s := table.Options(o)
	return table.ReadTable.Strings(&s)
}

// Formats are the formats that the options are for.
func (ReadOptions) Formats() []string { return []string{"carbon"} }
