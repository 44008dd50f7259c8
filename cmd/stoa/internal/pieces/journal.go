package pieces

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"stoa/cmd/stoa/internal/catchup"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/pred"
)

// JournalFile is the journal of a table that is written as several files: a JSON document per line, in the directory of
// the files. It is removed when the table is recorded as done.
const JournalFile = ".stoa-pieces.journal"

// unfinished is the suffix of the name of such a table's directory until all files are complete.
const unfinished = catchup.Unfinished

const piecesKind = "pieces"

// piecesHead is the first line.
type piecesHead struct {
	Stoa string `json:"stoa"` // "pieces"
	Of   string `json:"of"`   // SHA-256 of everything the files depend on: source, its stamp, flags, units
}

// File is one file of a table that is written as several.
type File struct {
	Name     string `json:"file"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum"` // over its rows, independent of their order
}

// pieceLine is any other line: a file of a unit, or its end.
type pieceLine struct {
	Unit  int          `json:"unit"`
	Piece *File        `json:"piece,omitempty"`
	Time  int64        `json:"time,omitempty"` // when the file was last changed, nanoseconds since 1970
	Last  []pred.Value `json:"last,omitempty"` // the primary key of the file's last row; none: not known
	End   bool         `json:"end,omitempty"`  // the unit has no more rows
}

// unitDone is the finished part of a unit.
type unitDone struct {
	files []File
	last  []pred.Value
	end   bool
}

func (u *unitDone) rows() (n int64) {
	for _, f := range u.files {
		n += f.Rows
	}
	return n
}

// Held returns the error for a directory to which an earlier run has written.
func Held(dir string) error {
	return &cli.UseError{Message: dir + " holds what an earlier run has converted",
		Hint: "--resume goes on with it; another directory begins anew"}
}

// pieceJournal is the open journal.
type pieceJournal struct {
	dir  string
	file *os.File
}

// sumOfValues returns the SHA-256 of values.
func sumOfValues(values ...any) (string, error) {
	sum := sha256.New()
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%d\n%s\n", len(b), b)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// openPieces opens the journal of the files in dir, and returns what an earlier run with the same input has done of n
// units. Without resume, nothing may exist yet. differing returns the files that are not as the earlier run wrote them.
func openPieces(dir, of string, n int, resume bool, differing func([]pieceLine) (map[string]bool, error)) (
	j *pieceJournal, done []unitDone, err error) {
	done = make([]unitDone, n)
	name := filepath.Join(dir, JournalFile)
	b, err := os.ReadFile(name)
	switch {
	case err == nil && !resume:
		return nil, nil, Held(dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	case err != nil:
		if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
			return nil, nil, &cli.UseError{Message: dir + " holds files that no run of stoa has left",
				Hint: "choose another directory"}
		}
	}
	lines := piecesOf(b, of)
	if lines == nil { // of other flags, or of files that have changed since
		if err := os.RemoveAll(dir); err != nil {
			return nil, nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, nil, err
	}
	bad, err := differing(lines)
	if err != nil {
		return nil, nil, err
	}
	kept := replayPieces(dir, lines, bad, done)
	text, err := output.JsonLine(piecesHead{piecesKind, of})
	for _, l := range kept {
		line, lineErr := output.JsonLine(l)
		text, err = append(text, line...), errors.Join(err, lineErr)
	}
	if err != nil {
		return nil, nil, err
	}
	j = &pieceJournal{dir: dir}
	return j, done, j.begin(name, text)
}

// begin writes a new journal without void lines, and keeps it open.
func (j *pieceJournal) begin(name string, text []byte) error {
	fresh := name + ".new"
	f, err := os.Create(fresh)
	if err != nil {
		return err
	}
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(fresh, name)
	}
	if err != nil {
		f.Close()
		return err
	}
	j.file = f
	return nil
}

// piecesOf returns the lines of a journal about of; nil if it is about something else, or does not exist. An incomplete
// last line, written by a killed run, is ignored.
func piecesOf(b []byte, of string) []pieceLine {
	s := bufio.NewReader(bytes.NewReader(b))
	read := func(doc any) bool {
		line, err := s.ReadBytes('\n')
		return err == nil && json.Unmarshal(line, doc) == nil
	}
	var head piecesHead
	if !read(&head) || head.Stoa != piecesKind || head.Of != of {
		return nil
	}
	lines := []pieceLine{}
	for {
		var l pieceLine
		if !read(&l) {
			return lines
		}
		lines = append(lines, l)
	}
}

// replayPieces records the lines in done, and returns those that are valid. A file that is missing, has changed since
// it was written, or is bad is written again, and so are the later files of its unit.
func replayPieces(dir string, lines []pieceLine, bad map[string]bool, done []unitDone) (kept []pieceLine) {
	void := map[int]bool{}
	for _, l := range lines {
		if l.Unit < 0 || l.Unit >= len(done) || void[l.Unit] {
			continue
		}
		if p := l.Piece; p != nil {
			info, err := os.Stat(filepath.Join(dir, p.Name))
			if bad[p.Name] || !filepath.IsLocal(p.Name) || err != nil || info.Size() != p.Bytes ||
				info.ModTime().UnixNano() != l.Time {
				void[l.Unit] = true
				continue
			}
			done[l.Unit].files = append(done[l.Unit].files, *p)
			done[l.Unit].last = l.Last
		}
		done[l.Unit].end = done[l.Unit].end || l.End
		kept = append(kept, l)
	}
	return kept
}

// append adds a line, which is on stable storage when it returns.
func (j *pieceJournal) append(l pieceLine) error {
	if l.Piece != nil {
		info, err := os.Stat(filepath.Join(j.dir, l.Piece.Name))
		if err != nil {
			return err
		}
		l.Piece.Bytes, l.Time = info.Size(), info.ModTime().UnixNano()
	}
	text, err := output.JsonLine(l)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(text); err != nil {
		return err
	}
	return j.file.Sync()
}

func (j *pieceJournal) close() { j.file.Close() } // every line was synced
