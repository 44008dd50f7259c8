package ipc

import (
	"stoa/internal/check"
	"stoa/region"
)

// codes are the finding codes of the format.
var codes = check.Codes{
	{Code: "arrow.open", Severity: region.Error, Help: "The schema or the footer cannot be read, and without them " +
		"nothing else can. Or two parts of the file contradict each other, and it is unknown which one is damaged: " +
		"the schema at the beginning differs from the footer's, or the footer omits batches that are among the " +
		"messages. stoa recover reads the messages by their prefixes, and does not take a message for the body that " +
		"a damaged schema claims."},
	{Code: "arrow.footer", Severity: region.Error, Help: "The footer of a file is damaged or missing: the file was " +
		"truncated, or never finished. Recovery reads the messages from the beginning, like a stream, up to where " +
		"they end."},
	{Code: "arrow.batch", Severity: region.Error, Help: "A record batch or a dictionary cannot be read: its rows are " +
		"lost. Arrow files have no checksums; the batch contradicts the format."},
	{Code: "arrow.layout", Severity: region.Warning, Help: "The messages of the file do not follow each other as the " +
		"format requires, or there are bytes between them that belong to no message. Or the schema at the beginning " +
		"cannot be read, which costs nothing as long as the footer, whose schema is used, is intact."},
	{Code: "arrow.stream.end", Severity: region.Error, Help: "A stream ends without its end mark. Writers may omit " +
		"it, but stoa and most others write it: the stream may have been truncated between two batches, and rows may " +
		"be missing. If the writer is known to omit the mark, use --partial (--source-opt partial=true)."},
	{Code: "arrow.stream.rest", Severity: region.Error, Help: "There are bytes after the end mark of a stream, where " +
		"readers stop. The mark is a length of 0: a message overwritten with zeros looks like one, and then the " +
		"batches after it are missing. Of several concatenated streams, only the first is read."},
	{Code: "arrow.unreadable", Severity: region.Error, Help: "The storage failed to read bytes, or the file uses a " +
		"feature that stoa does not support; the message names it."},
}
