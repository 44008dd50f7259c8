package format

import (
	"context"
	"errors"
	"fmt"
	"path"

	"stoa/fault"
)

// Member is a file that belongs to a table of another format, and is a table of its own: a Parquet file of a lake.
type Member struct {
	Name   string
	Format *Format
	Opts   map[string]string // with which it is opened
}

// Target returns the place of the file, and the options with which its format verifies it.
func (m Member) Target(tg Target, o OpenOptions) (Target, OpenOptions) {
	o.Opts, o.Limits, o.Tracer = m.Opts, o.Limits.Apart(), nil
	return Target{Tree: tg.Tree, Name: m.Name, Limits: o.Limits}, o
}

// Composite is an optional interface of a reader whose table consists of such files. Where the table's format has no
// Verify, every file is also verified by its own format, which knows more of it than reading does.
type Composite interface {
	Members() []Member
}

// UncheckedMembers returns a Format.Unchecked for tables of files. open opens a table, whose reader is a Composite.
func UncheckedMembers(open func(context.Context, Target, OpenOptions) (Reader, error)) func(context.Context, Target,
	OpenOptions) (string, error) {
	return func(ctx context.Context, tg Target, o OpenOptions) (string, error) {
		return uncheckedMembers(ctx, open, tg, o)
	}
}

func uncheckedMembers(ctx context.Context, open func(context.Context, Target, OpenOptions) (Reader, error), tg Target,
	o OpenOptions) (string, error) {
	r, err := open(ctx, tg, o)
	if err != nil {
		return "", err
	}
	members := r.(Composite).Members()
	if err := r.Close(); err != nil {
		return "", err
	}
	first, bare := "", 0
	for _, m := range members {
		if m.Format.Unchecked == nil {
			continue
		}
		at, opts := m.Target(tg, o)
		what, err := m.Format.Unchecked(ctx, at, opts)
		if err != nil && (ctx.Err() != nil || !errors.Is(err, fault.Corrupt)) { // damage is reported by others
			return "", err
		}
		if what == "" {
			continue
		}
		if bare++; bare == 1 {
			first = path.Base(m.Name) + ": " + what
		}
	}
	if bare < 2 {
		return first, nil
	}
	return fmt.Sprintf("%s; and likewise in %d of the other %s", first, bare-1, fault.Count(len(members)-1, "file")),
		nil
}
