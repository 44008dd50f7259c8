package about

import "regexp"

// Cause is the usual cause of findings with certain codes, and the next step.
type Cause struct {
	codes *regexp.Regexp
	Title string // the kind of trouble
	Why   string
	Next  string // the next command, and what it does
}

// damaged is also the cause of codes that match none of the others.
var damaged = Cause{regexp.MustCompile(`([^r]|[^e]r)\.damaged$|header\.damaged$|\.(bad|header|record|struct)$`),
	"undecodable structures",
	"Bytes changed after they were written, or the program that wrote them has a bug.",
	"stoa recover PATH -o OUT writes every row that can be read"}

// causes are tried in this order.
var causes = []Cause{
	{regexp.MustCompile(`^kudu\.wal\.missing$`), "a log in another directory",
		"A server keeps its log where --fs_wal_dir says, which is often another disk, or the log was not copied.",
		"stoa ls PATH --wal-dir DIR reads the log in DIR as well"},
	{regexp.MustCompile(`^kudu\.tablet\.missing$`), "tablets on other servers",
		"A table is spread over servers, and not all of their disks were named.",
		"stoa census PATH PATH… shows which tablets exist where; --partial reads those"},
	{regexp.MustCompile(`^carbon\.leftover$`), "files that are no longer read",
		"Changes of a table leave earlier files behind, until the table is cleaned.",
		"stoa clean TABLE --dry-run lists what can be removed"},
	{regexp.MustCompile(`^file\.unchecked$`), "no checksums",
		"The format has none, or the program that wrote the file left them out.",
		"stoa seal PATH -o FILE.seal writes checksums, against which stoa verify --seal compares"},
	{regexp.MustCompile(`^seal\.`), "changed after sealing",
		"Files were changed, added, renamed or removed after stoa seal had read them, or the seal itself was.",
		"stoa recover --seal FILE.seal PATH -o OUT restores what the seal's parity covers"},
	{regexp.MustCompile(`^output\.`), "output that differs from the declaration",
		"The source declares other rows than it has, or contains text that is not UTF-8.",
		"stoa verify PATH --deep shows which part of the source is wrong"},
	{regexp.MustCompile(`^(csv|tsv|jsonl)\.`), "text that does not parse",
		"A line was edited or cut off, or the text has another dialect than the options say.",
		"stoa cat PATH --damaged skip-rows reads the other rows; stoa formats lists the options of a dialect"},
	{regexp.MustCompile(`\.(read|unreadable|unread|unsupported|limit)$`), "read failures",
		"The storage failed, the file needs a feature that stoa does not have, or a limit is too low: the message " +
			"tells which.",
		"stoa verify PATH again, on a copy in another place or with the flag that the message names"},
	{regexp.MustCompile(`\.recover(ed)?\b|\.lost$|guessed|inferred|\.carve\.|schema\.unknown|columns\.unknown`),
		"incomplete information in recovery",
		"Information about the layout of the rows is lost, so stoa recover inferred it, or left rows out.",
		"stoa diff OUT OTHER compares the output with a backup, an export or an older version"},
	{regexp.MustCompile(`checksum(\.zero)?$|crc$`), "changed bytes",
		"Bytes changed after they were written: failing storage or memory, a broken transfer, another program.",
		"stoa recover PATH -o OUT writes the other rows, unless an intact copy is at hand"},
	damaged,
	{regexp.MustCompile(`missing|part|instance|other|twice|repeated|replica|datadir|deleted|orphan|^cfile\.set|` +
		`catalog|unnamed|unlisted|newer|swapped|wal\.gap|foreign|below|\.odd$|left\.out|too\.deep|below|nested`),
		"inconsistent sets of files",
		"Files were moved, renamed, copied only in part, or mixed with those of another table or time.",
		"stoa ls PATH lists the contents of the place; put the files back, or stoa recover PATH -o OUT reads the " +
			"files that exist"},
	{regexp.MustCompile(`coverage|leftover|layout|unclaimed|padded|overlap|unchecked|unknown|` +
		`history|snapshot|tombstone`),
		"leftover or unchecked data",
		"A program stopped midway, did not clean up after itself, or writes no checksums.",
		"stoa describe PATH shows the bytes and their structure"},
	{regexp.MustCompile(`utf8|literal|int128|calendar|null$|version|\.form$|\.name$|boolean|zlib|` +
		`duplicate|runs|live|block\.empty`),
		"unusual or easily misread data",
		"The program that wrote the file follows the format loosely.",
		"stoa convert PATH -o OUT writes a file that every reader accepts"},
	{regexp.MustCompile(`cut|torn|short|trunc|unfinished|\.end$|empty|incomplete|magic|footer|open|\.rest$|` +
		`uncommitted|txn`), "missing end",
		"The program that wrote the file was stopped, or a copy was truncated.",
		"stoa recover PATH -o OUT writes the complete rows"},
	{regexp.MustCompile(`order|minmax|bounds|bloom|index|disagrees|levels|statistics|stats|sizes|encodings|copy|` +
		`count|keys|range|numvalues|firstvalue|size$|rawsize|ordinal|restarts|summary|types|rows$|uneven|misplaced`),
		"contradictions",
		"The program that wrote the file has a bug, or one of two copies of the same fact is damaged.",
		"stoa convert PATH -o OUT reads every row and writes indexes, bounds and counts anew"},
}

// CauseOf returns the likely cause of a finding with this code.
func CauseOf(code string) Cause {
	for _, c := range causes {
		if c.codes.MatchString(code) {
			return c
		}
	}
	return damaged
}

// Causes returns all causes, in the order in which they are tried.
func Causes() []Cause { return causes }
