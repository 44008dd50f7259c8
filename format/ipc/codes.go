package ipc

import (
	"stoa/internal/check"
	"stoa/region"
)

// codes are the finding codes of the format.
var codes = check.Codes{
	{Code: "arrow.open", Severity: region.Error,
		Help: "The schema or the footer cannot be read, so nothing of the file can. Or two places of a file " +
			"contradict each other, one of them is damaged, and which is unknown: the schema at the " +
			"beginning is another than the footer's, or the footer leaves out batches that stand among the messages. " +
			"stoa recover goes by what is in front of the messages, and takes none of them for the body " +
			"that a damaged schema claims."},
	{Code: "arrow.footer", Severity: region.Error, Help: "The footer of a file is damaged or gone: the file is " +
		"cut, or was never finished. Recovery reads the messages from the beginning, as of a stream, up to " +
		"where they end."},
	{Code: "arrow.batch", Severity: region.Error, Help: "A record batch or a dictionary cannot be read: its " +
		"rows are lost. Arrow files have no checksums; this is what contradicts the format."},
	{Code: "arrow.layout", Severity: region.Warning, Help: "The messages of the file do not follow each other " +
		"as they should, or bytes lie between them that no message claims. Or the schema at the beginning " +
		"cannot be read, which costs nothing as long as there is a footer, whose schema is taken."},
	{Code: "arrow.stream.end", Severity: region.Error, Help: "A stream ends without its end mark. Writers may " +
		"leave it out, but stoa and most others write it: the stream may have been cut between two batches, and " +
		"rows be missing. Where it is known that its writer leaves the mark out, --partial (--source-opt " +
		"partial=true) says so."},
	{Code: "arrow.stream.rest", Severity: region.Error, Help: "Bytes lie after the end mark of a stream, where " +
		"nothing reads on. The mark is a length of 0: zeros in the place of a message look like one, and the " +
		"batches from there on are missing. Of streams one after the other, only the first is read."},
	{Code: "arrow.unreadable", Severity: region.Error, Help: "Bytes could not be read from where the file is " +
		"kept, or need something that is not known here; the message names it."},
}
