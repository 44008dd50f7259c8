package text

import (
	"bytes"
	"fmt"
	"io"

	"stoa/fault"
)

// csvField is a field of a record. Its bytes are valid until the next record.
type csvField struct {
	b      []byte
	quoted bool
}

// csvScanner splits a text into records by RFC 4180. Lines may end in CR LF or LF; a quote within a field that does not
// begin with one is an ordinary character; a quoted field must be followed by a separator or the end of the line.
type csvScanner struct {
	in      *input
	comma   byte
	fields  []csvField
	scratch []byte // fields without doubled quotes
	line    int64  // first line of the record, from 1
	off     int64  // offset of the record in the text
	size    int64  // bytes of the record
	below   int64  // lines read so far, including those of the record
	again   int64  // bytes that were scanned again because of misplaced quotes
	columns int    // of the table; 0: unknown
}

// maxRescan limits the bytes that are scanned again because of misplaced quotes, and maxQuoteScan the search for the
// quote that ends a field with a misplaced one.
const maxRescan, maxQuoteScan = 1 << 30, 1 << 20

func newCSVScanner(in *input, comma byte) *csvScanner { return &csvScanner{in: in, comma: comma} }

// next reads the next record; io.EOF after the last one. With blank, an empty line is a record of one empty field;
// otherwise it is skipped.
func (s *csvScanner) next(blank bool) error {
	for {
		s.off = s.in.offset()
		n, lines, err := s.record()
		if err != nil {
			return err
		}
		s.line = s.below + 1
		s.below += int64(lines)
		s.size = int64(n)
		s.in.at += n
		if blank || len(s.fields) != 1 || len(s.fields[0].b) > 0 || s.fields[0].quoted {
			return nil
		}
	}
}

// record parses the record at the start of the buffer, reading more until it is complete.
func (s *csvScanner) record() (n, lines int, err error) {
	for {
		n, lines, err := s.parse(s.in.rest(), s.in.err == io.EOF)
		if err != errMore {
			return n, lines, err
		}
		switch err := s.in.fill(); {
		case err == io.EOF && len(s.in.rest()) == 0:
			return 0, 0, io.EOF
		case err != nil && err != io.EOF:
			return 0, 0, err
		}
	}
}

// errMore means that the record continues beyond the buffer.
var errMore = fault.Bugf("more bytes are needed")

// parse parses the record at the start of b. end: b is the rest of the text. A record with a misplaced quote is also
// parsed to its end: its other fields may contain line ends, which do not start a record.
func (s *csvScanner) parse(b []byte, end bool) (n, lines int, err error) {
	s.fields = s.fields[:0]
	s.scratch = s.scratch[:0]
	lines = 1
	var wrong error // the error of the first misplaced quote
	if len(b) == 0 {
		return 0, 0, errMore
	}
	for at := 0; ; {
		var stop int // end of the field in b, including its quotes
		var f csvField
		if at < len(b) && b[at] == '"' {
			var more int
			f, stop, more, err = s.quoted(b, at, end)
			if quoteOf(err) != nil {
				if wrong == nil {
					wrong = err
				}
				stop, more, err = s.pass(b, at, stop, end)
			}
			if err != nil {
				return 0, 0, err
			}
			lines += more
		} else {
			stop = at + s.unquotedLen(b[at:])
			f.b = b[at:stop]
		}
		if stop == len(b) { // the end of the text ends the record
			if !end {
				return 0, 0, errMore
			}
			s.add(f, true)
			return stop, lines, within(wrong, stop, lines)
		}
		if b[stop] == s.comma {
			if s.in.most > 0 && int64(len(s.fields)) >= s.in.most {
				return 0, 0, fault.Limitf(s.in.span(s.off+int64(at), int64(stop-at)), linePath(s.below+1, ""),
					"more than %d fields (field limit)", s.in.most)
			}
			s.add(f, false)
			at = stop + 1
			continue
		}
		s.add(f, b[stop] == '\n')
		n = stop + 1 + bool2int(b[stop] == '\r')
		return n, lines, within(wrong, n, lines)
	}
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

// add adds a field. If it is unquoted and the last of its line, it loses the CR of a CR LF.
func (s *csvScanner) add(f csvField, last bool) {
	if last && !f.quoted {
		f.b = trimCR(f.b)
	}
	s.fields = append(s.fields, f)
}

// unquotedLen returns the length of the unquoted field at the start of b.
func (s *csvScanner) unquotedLen(b []byte) int {
	for i, c := range b {
		if c == s.comma || c == '\n' {
			return i
		}
	}
	return len(b)
}

// quoted parses the field that begins with the quote at b[at]; stop is after its closing quote.
func (s *csvScanner) quoted(b []byte, at int, end bool) (f csvField, stop, lines int, err error) {
	from, start := at+1, len(s.scratch)
	for i := from; ; {
		k := bytes.IndexByte(b[i:], '"')
		if k < 0 {
			if !end {
				return f, 0, 0, errMore
			}
			return f, 0, 0, s.fail(at, len(b)-at, "the quote that is opened here is not closed")
		}
		i += k + 1
		if i < len(b) && b[i] == '"' {
			s.scratch = append(s.scratch, b[from:i]...)
			i++
			from = i
			continue
		}
		if i == len(b) && !end {
			return f, 0, 0, errMore
		}
		f = csvField{b: b[from : i-1], quoted: true}
		if len(s.scratch) > start {
			s.scratch = append(s.scratch, f.b...)
			f.b = s.scratch[start:len(s.scratch):len(s.scratch)]
		}
		lines = bytes.Count(b[at:i], []byte{'\n'})
		return f, i, lines, s.follows(b, at, i, end)
	}
}

// follows returns an error unless a field can end after the closing quote before b[i].
func (s *csvScanner) follows(b []byte, at, i int, end bool) error {
	ends, err := s.ends(b, i, end)
	if err == nil && !ends {
		return s.fail(at, i-at, "a closing quote is followed by %q instead of a separator or the end of the line", b[i])
	}
	return err
}

// ends reports whether a quoted field can end before b[i].
func (s *csvScanner) ends(b []byte, i int, end bool) (bool, error) {
	switch {
	case i == len(b) && !end, i+1 == len(b) && b[i] == '\r' && !end:
		return false, errMore
	case i == len(b), b[i] == s.comma, b[i] == '\n':
		return true, nil
	}
	return b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n', nil
}

// pass finds the end of the field at b[at], which has a misplaced quote. b[i] is the byte that cannot follow its
// closing quote, and is 0 if there is none. Either the opening quote is misplaced, or the one before b[i]. In the first
// case the field is unquoted, and ends at the next separator; in the second it ends at the next quote that can close
// it, unless another field begins first.
func (s *csvScanner) pass(b []byte, at, i int, end bool) (stop, lines int, err error) {
	if i == 0 || s.begins(b, i-1) && s.whole(b, at, i) {
		return at + s.unquotedLen(b[at:]), 0, nil
	}
	far := max(i, int(min(int64(i+maxQuoteScan), s.in.limit)))
	stop = i + s.unquotedLen(b[i:])
	for j := i; ; {
		k := bytes.IndexByte(b[j:max(j, min(len(b), far))], '"')
		if k < 0 && !end && len(b) < far {
			return 0, 0, errMore
		}
		if k += j; k < j || s.begins(b, k) {
			break
		}
		if j = k + 1; j < len(b) && b[j] == '"' {
			j++
			continue
		}
		ends, err := s.ends(b, j, end)
		if err != nil {
			return 0, 0, err
		}
		if ends {
			stop = j
			break
		}
	}
	return stop, bytes.Count(b[at:stop], []byte{'\n'}), nil
}

// begins reports whether a field can begin with the quote at b[k].
func (s *csvScanner) begins(b []byte, k int) bool { return b[k-1] == s.comma || b[k-1] == '\n' }

// whole reports whether a record with the table's number of fields can end before b[i] if the quote at b[at] does not
// open a field.
func (s *csvScanner) whole(b []byte, at, i int) bool {
	n := bytes.IndexByte(b[at:i], '\n')
	return n < 0 || s.columns == 0 || len(s.fields)+1+bytes.Count(b[at:at+n], []byte{s.comma}) == s.columns
}

// resume moves past a record with a misplaced quote, and turns err into the error of a row. It returns err unchanged if
// it is another error, if the record is the last one, or once maxRescan bytes were scanned again.
func (s *csvScanner) resume(err error) error {
	q := quoteOf(err)
	if q == nil || s.in.rest()[q.size-1] != '\n' {
		return err
	}
	if s.again += max(0, int64(q.at+q.n-q.size)); s.again > maxRescan {
		return err
	}
	s.below += int64(q.lines)
	s.in.at += q.size
	if q.lines > 1 {
		q.reason = fmt.Sprintf("%s; the record is assumed to end with line %d", q.reason, s.below)
	}
	err.(*fault.Error).Cause = &rowError{err: q}
	return err
}

// quoteError is the cause of the error of a record with a misplaced quote.
type quoteError struct {
	reason      string
	at, n       int // offset of the quote in the record; bytes scanned from there on
	size, lines int // of the record, as far as known
}

func (e *quoteError) Error() string { return e.reason }

// quoteOf returns the quoteError in err, or nil.
func quoteOf(err error) *quoteError {
	e, ok := err.(*fault.Error)
	if !ok {
		return nil
	}
	q, _ := e.Cause.(*quoteError)
	return q
}

// within sets the size of the record in a quoteError; it returns other errors, and nil, unchanged.
func within(wrong error, size, lines int) error {
	if q := quoteOf(wrong); q != nil {
		q.size, q.lines = size, lines
	}
	return wrong
}

// fail returns a quoteError about n bytes at offset at of the record that is being parsed.
func (s *csvScanner) fail(at, n int, format string, args ...any) error {
	line := s.below + 1 + int64(bytes.Count(s.in.rest()[:at], []byte{'\n'}))
	return &fault.Error{Class: fault.Corrupt, At: s.in.span(s.off+int64(at), int64(n)), Path: linePath(line, ""),
		Cause: &quoteError{reason: fmt.Sprintf(format, args...), at: at, n: n}}
}
