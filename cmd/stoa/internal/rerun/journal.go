package rerun

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/look"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/survey"
	"stoa/format"
	"stoa/store/remote"
)

// journalFile records what a run did since it wrote the state file, as one JSON document per line: rewriting the state
// file after each of n tables would write n²/2 entries. Its first line identifies the state file to which it belongs.
// With any other state file it is void, so a run that is killed after writing a state file and before removing the
// journal causes no contradiction.
const journalFile = ".stoa-convert.journal"

// journalHead is the first line.
type journalHead struct {
	Stoa string `json:"stoa"` // "convert-all-journal"
	Of   string `json:"of"`   // SHA-256 of the state file
}

const journalKind = "convert-all-journal"

// journalLine is any other line, with one of the fields set.
type journalLine struct {
	Next   *Table  `json:"next,omitempty"`
	Done   *Table  `json:"done,omitempty"`
	Failed *Failed `json:"failed,omitempty"`
}

type Table struct {
	Source     string   `json:"source"`
	Output     string   `json:"output"` // in the directory
	Stamp      string   `json:"stamp"`  // of the source's files, before they were read
	Rows       int64    `json:"rows"`
	Damaged    bool     `json:"damaged,omitempty"` // not all of the table could be read: the next run tries again
	Checksum   string   `json:"checksum"`
	Partitions []string `json:"partitions,omitempty"` // the columns that are directories
	Arrow      []byte   `json:"schema,omitempty"`     // of the rows, as a message of Arrow IPC

	Table string `json:"table,omitempty"` // its name in the place of all tables
	Taken bool   `json:"taken,omitempty"` // it is there, and not in Output any more

	Name  string   `json:"name,omitempty"` // that the place gave the table, with its id and its parts
	ID    string   `json:"id,omitempty"`
	Parts []string `json:"parts,omitempty"`

	Pieces []pieces.File `json:"pieces,omitempty"` // the files, if the output is a directory of several
	Digest string        `json:"digest,omitempty"` // of the output's bytes, if its types allow no checksum of the rows
	Noted  *Noted        `json:"noted,omitempty"`  // of migrate
	Told   *reading.Told `json:"told,omitempty"`

	Catalogue string `json:"-"` // by which a lake is read; "": any

	Reached map[string]format.Reach `json:"reached,omitzero"`  // how far its parts were read
	Moments *Moments                `json:"moments,omitempty"` // of rescue
}

// Place returns where a table is, in dir.
func (d *Table) Place(dir string) string {
	if d.Taken {
		return dir + "#" + d.Table
	}
	return filepath.Join(dir, d.Output)
}

// Read returns what an earlier run has read of a table.
func (d *Table) Read() *Read {
	r := Read{Rows: d.Rows, Reached: d.Reached, Losses: d.Told.Lost()}
	if d.Told != nil {
		r.Findings = d.Told.Findings
	}
	return &r
}

// Moments are those of a table as it was read.
type Moments struct {
	First  *look.Moment `json:"first"`
	Exact  *look.Moment `json:"exact_from"` // snapshots are exact from then on
	Last   *look.Moment `json:"last"`
	Logged int64        `json:"logged_operations"` // row operations that only logs had
}

// Noted is what migrate reports of a table, besides its rows, as a later run does too.
type Noted struct {
	Retyped []string         `json:"retyped,omitempty"` // columns that are read with another type
	Dates   []survey.Column  `json:"dates,omitempty"`
	Altered []format.Altered `json:"altered,omitempty"`
	Notes   []string         `json:"notes,omitempty"`
	Seconds float64          `json:"seconds"`
	Files   int              `json:"files"`
	Bytes   int64            `json:"bytes"`
}

// Failed is a table, or possible table, that could not be converted, with the reason.
type Failed struct {
	Source string `json:"source"`
	Failed string `json:"failed"`
}

// journal is the journal of a run. The file is created for the run's second table.
type journal struct {
	of      string // SHA-256 of the state file; "": this run has written none yet
	file    *os.File
	failed  int  // how many failures are in the state file or here
	earlier bool // an earlier run has left one

	// put writes the journal at an address, whose objects cannot be appended to: it is short there.
	put  func(b []byte) error
	text []byte
}

// longJournal is the length of a journal at an address after which the state is written instead.
const longJournal = 128 << 10

func sumOfState(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// begin starts the journal of a newly written state file. If an earlier journal cannot be removed, it is void
// nevertheless.
func (j *journal) begin(dir string, state []byte, failed int) {
	j.close()
	if !remote.Is(dir) {
		_ = os.Remove(filepath.Join(dir, journalFile))
	}
	*j = journal{of: sumOfState(state), failed: failed, put: j.put}
}

// append adds a line, and the failures since the last one; both are on stable storage when it returns.
func (j *journal) append(dir string, failed []Failed, line journalLine) error {
	var lines []any
	if j.file == nil && len(j.text) == 0 {
		lines = append(lines, journalHead{journalKind, j.of})
	}
	for i := range failed[j.failed:] {
		lines = append(lines, journalLine{Failed: &failed[j.failed+i]})
	}
	var text []byte
	for _, l := range append(lines, line) {
		b, err := output.JsonLine(l)
		if err != nil {
			return err
		}
		text = append(text, b...)
	}
	j.failed = len(failed)
	if j.put != nil {
		j.text = append(j.text, text...)
		return j.put(j.text)
	}
	if err := j.open(dir); err != nil {
		return err
	}
	if _, err := j.file.Write(text); err != nil {
		return err
	}
	return j.file.Sync()
}

// open creates the file. It never appends to an existing one, to which another run may be writing.
func (j *journal) open(dir string) (err error) {
	if j.file != nil {
		return nil
	}
	name := filepath.Join(dir, journalFile)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if j.file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		j.file = nil
		return err
	}
	// Some file systems cannot sync a directory. If the name is lost in a crash, its tables are converted again.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}

// pending reports whether there is a journal, of this run or of an earlier one, to be merged into the state file.
func (j *journal) pending() bool { return j.file != nil || j.earlier || len(j.text) > 0 }

func (j *journal) close() {
	if j.file != nil {
		j.file.Close() // every line was synced
		j.file = nil
	}
}

// readJournal returns the lines of the journal of a state file with this content; found reports whether any journal
// exists. An incomplete last line, written by a killed run, is ignored: that table is converted again.
func readJournal(ctx context.Context, a *cli.App, dir string, state []byte) (lines []journalLine, found bool,
	err error) {
	b, err := a.ReadFile(ctx, filepath.Join(dir, journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	first, rest, whole := bytes.Cut(b, []byte("\n"))
	var head journalHead
	if !whole || json.Unmarshal(first, &head) != nil || head.Stoa != journalKind || head.Of != sumOfState(state) {
		return nil, true, nil
	}
	for {
		var text []byte
		var line journalLine
		text, rest, whole = bytes.Cut(rest, []byte("\n"))
		if !whole || json.Unmarshal(text, &line) != nil {
			return lines, true, nil
		}
		lines = append(lines, line)
	}
}
