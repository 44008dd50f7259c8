package look

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/reading"
	"stoa/fault"
	"stoa/store"
)

const (
	longestSplit = 1 << 28
	frameSize    = 256 << 10
)

// answer ends what a worker writes for a split.
type answer struct {
	Plan     string               `json:"plan"`
	N        int                  `json:"n"`
	Status   int                  `json:"status"` // as scan --split ends with
	Rows     int64                `json:"rows"`
	Bytes    int64                `json:"bytes"` // of the Arrow stream
	Work     work                 `json:"work"`
	Error    *answerError         `json:"error,omitempty"`
	Findings []reading.FindingDoc `json:"findings"`
	Losses   int                  `json:"losses"` // rows or cells that the damage policy left out or made null
}

// work is what reading a split took.
type work struct {
	Version int      `json:"stoa_work"`
	Pages   pagesDoc `json:"pages"` // of the split's rows and columns; none of formats without pages
	Bytes   int64    `json:"bytes"` // read from files and stores, with metadata
}

type pagesDoc struct {
	Read    int64 `json:"read"`
	Skipped int64 `json:"skipped"` // because bounds, an index or the rest of the predicate exclude their rows
}

// workOf returns what w has counted, and the bytes that were read beyond before.
func workOf(a *cli.App, w *stoa.Work, before int64) work {
	return work{1, pagesDoc{w.Read.Load(), w.Skipped.Load()}, a.Tallies.Read.Load() - before}
}

// answerError is why a stream was cut off.
type answerError struct {
	Message string `json:"message"`
	Object  string `json:"object,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Length  *int64 `json:"length,omitempty"`
}

// runWorker answers one split after the other, each a line of standard input, until its end.
func runWorker(cmd *cobra.Command, a *cli.App, r *reading.Reading) error {
	ctx := cmd.Context()
	if r.ToFile() || r.Form != "" && r.Form != "arrow" || r.Manifest != "" {
		return cli.WrongUse("--splits writes Arrow streams to standard output: it takes no -o, --format and --manifest")
	}
	in := bufio.NewReaderSize(a.In, 64<<10)
	for {
		line, err := readLine(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := answerSplit(ctx, a, r, line); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// readLine reads a line. A last one without its end was cut off, and is an error.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case err == io.EOF && len(line) > 0:
			return nil, cli.WrongUse("--splits: the input ends within a split, after %d bytes of it", len(line))
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > longestSplit:
			return nil, cli.WrongUse("--splits: a line has more than %d bytes", longestSplit)
		}
	}
}

// answerSplit writes the rows of a split and what became of them. Its error ends the worker: the answer could not be
// written.
func answerSplit(ctx context.Context, a *cli.App, r *reading.Reading, line []byte) error {
	out := &frames{w: a.Stdout}
	doc := answer{N: -1, Findings: []reading.FindingDoc{}}
	r.Losses = nil
	pages, before := &stoa.Work{}, a.Tallies.Read.Load()
	err := readInto(ctx, a, r, line, out, &doc, pages)
	if out.err != nil {
		return out.err
	}
	if lost := a.RemoteFailure(); lost != nil && (err == nil || errors.Is(err, cli.ErrDamage)) {
		err = lost // its absence is not the damage that was reported
	}
	doc.Bytes, doc.Losses, doc.Status = out.bytes, len(r.Losses), cli.Status(err)
	doc.Work = workOf(a, pages, before)
	if err != nil && !errors.Is(err, cli.ErrDamage) {
		doc.Error = answerOf(err)
	}
	if err := out.end(); err != nil {
		return err
	}
	if err := json.NewEncoder(a.Stdout).Encode(doc); err != nil {
		return err
	}
	return a.Stdout.Flush()
}

// answerOf returns the message of an error and, if it has one, its place.
func answerOf(err error) *answerError {
	out := &answerError{Message: cli.InFlags(cli.Line(err))}
	var e *fault.Error
	if errors.As(err, &e) && e.At != (fault.Span{}) {
		out.Object, out.Offset, out.Length = e.At.Object, &e.At.Off, &e.At.Len
	}
	return out
}

// readInto writes the rows of a split as an Arrow stream, and fills in the answer.
func readInto(ctx context.Context, a *cli.App, r *reading.Reading, line []byte, out io.Writer, doc *answer,
	pages *stoa.Work) error {
	s, err := parseSplit(line)
	if err != nil {
		return err
	}
	doc.Plan, doc.N = s.Plan, s.N
	spec, err := r.Spec()
	if err != nil {
		return err
	}
	spec.Work = pages
	t, err := openSplit(ctx, a, s)
	if err != nil {
		return cli.Whole(err)
	}
	defer t.Close()
	sc, err := t.Schema()
	if err != nil {
		return cli.Whole(err)
	}
	w, err := stoa.Create(ctx, cli.Dash, sc, stoa.CreateOptions{Formats: a.Formats, To: "arrow", Alloc: cli.Pool,
		Opts: map[string]string{"stream": "true"}, Sink: cli.StreamTo(out)})
	if err != nil {
		return err
	}
	if err := reading.CopyRows(ctx, t.Scan(ctx, spec), w); err != nil {
		return cli.Whole(errors.Join(err, w.Abort(ctx)))
	}
	sum, err := w.Close(ctx)
	if err != nil {
		return errors.Join(err, w.Abort(ctx))
	}
	doc.Rows = sum.Rows
	noticed := append(t.Findings(), sum.Altered...)
	for _, f := range noticed {
		doc.Findings = append(doc.Findings, reading.DocOfFinding(f))
	}
	if len(r.Losses) > 0 || reading.Damaged(noticed) {
		return cli.ErrDamage
	}
	return nil
}

// openSplit opens what a split reads.
func openSplit(ctx context.Context, a *cli.App, s stoa.Split) (*stoa.SplitTable, error) {
	for i := range s.Sources {
		uri := []string{s.Sources[i].URI}
		if err := a.Enter(ctx, uri); err != nil {
			return nil, err
		}
		s.Sources[i].URI = uri[0]
	}
	t, err := stoa.OpenSplit(ctx, s, stoa.OpenOptions{Formats: a.Formats, Tree: store.Roots(cli.Tree{A: a})})
	if err != nil {
		return nil, &cli.OpenError{Err: err}
	}
	return t, nil
}

// frames writes pieces of a stream, each after its length in four bytes; a length of 0 is the end.
type frames struct {
	w     io.Writer
	bytes int64
	err   error
}

func (f *frames) Write(p []byte) (n int, err error) {
	for len(p) > 0 && f.err == nil {
		part := p[:min(len(p), frameSize)]
		if f.err = f.put(uint32(len(part))); f.err == nil {
			_, f.err = f.w.Write(part)
		}
		if f.err == nil {
			n, p = n+len(part), p[len(part):]
		}
	}
	f.bytes += int64(n)
	return n, f.err
}

func (f *frames) end() error { return f.put(0) }

func (f *frames) put(n uint32) error {
	_, err := f.w.Write(binary.LittleEndian.AppendUint32(nil, n))
	return err
}
