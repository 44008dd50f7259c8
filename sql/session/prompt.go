package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"stoa/cmd/stoa/verbs"
)

const promptHelp = `Statements end with a semicolon and may have several lines.
  .tables           the tables that have names, and those that were read
  .schema TABLE     the columns of a table: a name, or an address
  .mode FORM        how rows are shown: table, vertical, jsonl, json, csv, tsv, markdown
  .timing on|off    say how long each statement took
  .help             this
  .quit             leave; so does Ctrl-D
The key Tab completes names of tables, columns and files.
`

// prompt is a dialogue.
type prompt struct {
	s      *Session
	lines  func() (string, error) // the next line; io.EOF at the end
	more   func(bool)             // reports whether the next line continues a statement
	timing bool
	typed  strings.Builder // an incomplete statement
}

// Prompt reads and runs statements until the end of input. Errors are printed, and do not end it.
func (s *Session) Prompt(ctx context.Context) error {
	p := &prompt{s: s, more: func(bool) {}}
	restore, err := p.open()
	if err != nil {
		return err
	}
	defer restore()
	idle := make(chan os.Signal, 1) // Ctrl-C just when a statement has ended
	signal.Notify(idle, os.Interrupt)
	defer signal.Stop(idle)
	for ctx.Err() == nil {
		line, err := p.lines()
		if errors.Is(err, errDropped) {
			p.typed.Reset()
			p.more(false)
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.typed.Len() == 0 && strings.HasPrefix(strings.TrimSpace(line), ".") {
			if quit := p.command(ctx, strings.Fields(line)); quit {
				return nil
			}
			continue
		}
		p.typed.WriteString(line + "\n")
		all, whole := Statements(p.typed.String())
		p.more(!whole)
		if !whole {
			continue
		}
		p.typed.Reset()
		for _, st := range all {
			p.run(ctx, st)
		}
	}
	return ctx.Err()
}

// open finds out where lines come from: a terminal with history and completion, or standard input.
func (p *prompt) open() (restore func(), err error) {
	in, ok := p.s.app.In.(*os.File)
	out, ok2 := p.s.app.Out.(*os.File)
	if !ok || !ok2 || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		r := bufio.NewReader(p.s.app.In)
		p.lines = func() (string, error) {
			line, err := r.ReadString('\n')
			if line != "" && errors.Is(err, io.EOF) {
				err = nil
			}
			return strings.TrimSuffix(line, "\n"), err
		}
		return func() {}, nil
	}
	k := &keys{from: in}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, out}, "stoa> ")
	t.AutoCompleteCallback = p.s.complete
	h := openHistory()
	t.History = h
	p.more = func(more bool) { t.SetPrompt(map[bool]string{false: "stoa> ", true: "  ...> "}[more]) }
	p.lines = func() (string, error) { // raw only while a line is read: a statement can be interrupted
		state, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return "", err
		}
		defer term.Restore(int(in.Fd()), state)
		if w, h, err := term.GetSize(int(out.Fd())); err == nil && w > 0 { // some do not know
			t.SetSize(w, h)
		}
		k.dropped = false
		line, err := t.ReadLine()
		if err == nil && k.dropped {
			return "", errDropped
		}
		return line, err
	}
	return h.close, nil
}

// errDropped says that Ctrl-C was typed: what was typed before, of this statement, is not meant.
var errDropped = errors.New("dropped")

// dropLine are the keys that empty a line and end it: to its end, delete all before, return.
const dropLine = "\x05\x15\r"

// keys are those of a terminal. At a Ctrl-C the package term would say that there is nothing more, as at a Ctrl-D: so
// it gets dropLine instead. It asks for keys when it has none left, so what is read after that is the line dropped.
type keys struct {
	from    io.Reader
	held    []byte // typed, and not yet given
	dropped bool   // a Ctrl-C was among what was given
}

func (k *keys) Read(b []byte) (int, error) {
	if len(k.held) == 0 {
		k.held = make([]byte, 256)
		n, err := k.from.Read(k.held)
		k.held = k.held[:n]
		if n == 0 {
			return 0, err
		}
	}
	upTo := bytes.IndexByte(k.held, 3)
	if upTo == 0 {
		k.dropped = true
		k.held = append([]byte(dropLine), k.held[1:]...)
		upTo = len(dropLine)
	}
	if upTo < 0 {
		upTo = len(k.held)
	}
	n := copy(b, k.held[:upTo])
	k.held = k.held[n:]
	return n, nil
}

// run runs a statement; Ctrl-C ends the statement, not the dialogue.
func (p *prompt) run(ctx context.Context, statement string) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	begin := time.Now()
	err := p.s.end(ctx, p.s.Statement(ctx, statement))
	if flushed := p.s.app.Stdout.Flush(); err == nil {
		err = flushed
	}
	p.s.say(err)
	if p.timing {
		fmt.Fprintf(p.s.app.Stderr, "%s\n", time.Since(begin).Round(time.Millisecond))
	}
}

// say reports an error of a statement.
func (s *Session) say(err error) {
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		s.app.Warn("stoa: interrupted")
	default:
		s.app.ReportError(nil, err)
	}
}

// command runs a line that begins with a dot; true: the dialogue ends.
func (p *prompt) command(ctx context.Context, words []string) bool {
	argument := strings.Join(words[1:], " ")
	switch words[0] {
	case ".quit", ".exit":
		return true
	case ".help":
		fmt.Fprint(p.s.app.Stdout, promptHelp)
	case ".tables":
		for _, n := range p.s.tables() {
			fmt.Fprintln(p.s.app.Stdout, n)
		}
	case ".schema":
		if argument == "" {
			p.s.say(verbs.WrongUsef(".schema: expected a table"))
			return false
		}
		if p.s.isAddress(argument) && !slices.Contains(p.s.names, argument) {
			argument = quote(argument)
		}
		p.run(ctx, "SELECT column_name, column_type FROM (DESCRIBE FROM "+argument+")")
	case ".mode":
		before := p.s.flags.Form
		p.s.flags.Form = argument
		if _, err := p.s.flags.RowForm(p.s.app); err != nil {
			p.s.flags.Form = before
			p.s.say(err)
		}
	case ".timing":
		p.timing = argument != "off"
	default:
		p.s.say(verbs.WrongUsef("there is no command %s; .help lists them", words[0]))
	}
	p.s.say(p.s.app.Stdout.Flush())
	return false
}

// tables returns the names of tables, and the addresses that were read.
func (s *Session) tables() []string {
	out := slices.Clone(s.names)
	for ask := range s.opened {
		out = append(out, quote(ask.Address))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
