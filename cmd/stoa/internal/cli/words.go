package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// firstFlags is the annotation with the flags that a verb's help explains on its first screen.
const firstFlags = "stoa.first"

// First declares which flags of a verb are most important: its help explains these, and only names the others.
func First(cmd *cobra.Command, names ...string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[firstFlags] = strings.Join(names, " ")
	return cmd
}

// FirstFlags returns the flags that First declared.
func FirstFlags(cmd *cobra.Command) []string { return strings.Fields(cmd.Annotations[firstFlags]) }

// Hide keeps flags of a verb out of its help. They exist so that they can be refused with a reason.
func Hide(cmd *cobra.Command, names ...string) *cobra.Command {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true
		}
	}
	return cmd
}

// OptionFlag is a flag for a frequently used reading option: --at TIME is --source-opt at=TIME.
type OptionFlag struct {
	Flag, Key, Value string // Value: the value that a flag without an argument sets
	Usage            string
	Given            string
}

// NewOptionFlags returns the flags for reading options. Which formats have the option is determined when a source is
// opened.
func NewOptionFlags() []*OptionFlag {
	return []*OptionFlag{
		{Flag: "at", Key: "at",
			Usage: "read the table as it was at `TIME`, such as 2024-02-29 or 2024-02-29T12:00:00Z, or in the " +
				"format's own terms: a hybrid time, a version, a snapshot (stoa formats NAME)"},
		{Flag: "no-wal", Key: "wal", Value: "false", Usage: "ignore the write-ahead log: read only what was flushed"},
		{Flag: "tablet", Key: "tablet", Usage: "read only the tablet with this `ID`"},
		{Flag: "partial", Key: "partial", Value: "true", Usage: "expect an incomplete source: missing tablets, an " +
			"--at outside of the known history, an Arrow stream without its end mark"},
		{Flag: "live", Key: "live", Value: "true", Usage: "read a directory although a server is running on it"},
		{Flag: "wal-dir", Key: "wal-dir", Usage: "the `DIR` that holds wals/, instead of searching for it"},
		{Flag: "data-dirs", Key: "data-dirs", Usage: "the `DIRS` that hold data/, separated by commas"},
		{Flag: "meta-dir", Key: "meta-dir", Usage: "the `DIR` that holds tablet-meta/, instead of searching for it"},
		{Flag: "encryption-key", Key: "encryption-key", Usage: "read encrypted servers with the keys in `FILE` " +
			"(a key, or lines UUID KEY), or default: those of Kudu's default key provider"},
		{Flag: "segment", Key: "segment",
			Usage: "read only segment `N`, or several (N,N), also if it was compacted or deleted"},
		{Flag: "segments", Key: "segments", Usage: "read segments `N,N`; all: every one whose files exist, also " +
			"compacted and deleted ones"},
		{Flag: "since", Key: "since", Usage: "read what changed after the load of a segment, or after a time, " +
			"`SEGMENT|TIME`: the rows that were deleted and those that were added, as column stoa_change says; with " +
			"--to kudu-backup: write what changed since an earlier BACKUP"},
		{Flag: "bucket", Key: "bucket", Usage: "read only bucket `N` of a bucketed table"},
		{Flag: "carbon-properties", Key: "properties",
			Usage: "read CarbonData's settings from `FILE`, a carbon.properties; #TABLE is then a table of the " +
				"store that it names"},
		{Flag: "allow-external", Key: "external", Value: "true",
			Usage: "also read files of a table that are outside of the given PATH, where its metadata name them"},
		{Flag: "key-file", Key: "key-file",
			Usage: "decrypt with the keys in `FILE`: lines footer KEY, column PATH KEY, key ID KEY"},
		{Flag: "schema", Key: "schema", Usage: "take the schema from `FILE` if the source has none or has lost it. " +
			"FILE is the output of stoa schema -f json or, for Parquet and RedFile, an intact file with the same " +
			"columns; for CSV and JSON lines, \"id: int64, …\", in a file or as it stands"},
	}
}
