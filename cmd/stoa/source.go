package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
)

// sourceFlags say how sources are opened.
type sourceFlags struct {
	from     string
	opts     []string
	noVerify bool
}

func (f *sourceFlags) register(a *app, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.from, "from", "", "read the sources as `FORMAT` instead of finding out (stoa formats lists them)")
	fl.StringArrayVar(&f.opts, "source-opt", nil, "set a reading option of the source's format, `KEY=VALUE` (stoa formats NAME lists them); repeatable")
	fl.BoolVar(&f.noVerify, "no-verify", false, "do not compare checksums")
	complete(cmd, "from", a.formatNames)
}

// options are what the flags mean to the library.
func (f *sourceFlags) options(a *app) (stoa.OpenOptions, error) {
	opts, err := keyValues("--source-opt", f.opts)
	if err != nil {
		return stoa.OpenOptions{}, err
	}
	if f.from != "" && a.format(f.from) == nil {
		return stoa.OpenOptions{}, &useError{"--from: there is no format \"" + f.from + "\"", "the formats are " + strings.Join(a.formatNames(), ", ")}
	}
	return stoa.OpenOptions{Formats: a.formats, From: f.from, Opts: opts, NoVerify: f.noVerify, Tree: tree{a: a}}, nil
}

// open opens all paths as one table.
func (f *sourceFlags) open(ctx context.Context, a *app, paths []string) (*stoa.Table, error) {
	o, err := f.options(a)
	if err != nil {
		return nil, err
	}
	return a.openAll(ctx, paths, o)
}

// openError is why a source could not be opened.
type openError struct{ error }

func (e *openError) Unwrap() error { return e.error }

func (a *app) openAll(ctx context.Context, paths []string, o stoa.OpenOptions) (*stoa.Table, error) {
	t, err := stoa.OpenAll(ctx, paths, o)
	if err != nil {
		return nil, &openError{err}
	}
	for _, s := range t.Sources() {
		a.detail("%s: %s", s.Name, s.Format)
	}
	return t, nil
}

// each opens every path on its own and shows it to do. A path that cannot be opened does not keep the others from
// being shown, if there are others.
func (f *sourceFlags) each(ctx context.Context, a *app, cmd *cobra.Command, paths []string, do func(path string, t *stoa.Table) error) error {
	o, err := f.options(a)
	if err != nil {
		return err
	}
	return a.eachPath(ctx, cmd, paths, func(path string) error {
		t, err := a.openAll(ctx, []string{path}, o)
		if err != nil {
			return err
		}
		defer t.Close()
		return do(path, t)
	})
}

// eachPath goes on after an error when there are several paths. The worst of the errors decides the status.
func (a *app) eachPath(ctx context.Context, cmd *cobra.Command, paths []string, do func(path string) error) error {
	var worst error
	for _, p := range paths {
		err := do(p)
		if err == nil {
			continue
		}
		if len(paths) == 1 || errors.Is(err, errEnough) || ctx.Err() != nil {
			return err
		}
		a.tell(cmd, err)
		switch st := status(err); {
		case st == statusDamage:
			worst = errDamage
		case worst == nil:
			worst = errFailed
		}
	}
	return worst
}

// keyValues reads KEY=VALUE arguments.
func keyValues(flag string, args []string) (map[string]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	m := map[string]string{}
	for _, s := range args {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, wrongUse("%s %s: write it as KEY=VALUE", flag, s)
		}
		m[k] = v
	}
	return m, nil
}

// size is how many bytes a source has: a file's, or those of all files in a directory. -1 if that is not known.
func (a *app) size(ctx context.Context, name string) int64 {
	tr := tree{a: a}
	name = withoutTable(name)
	info, err := tr.Stat(ctx, name)
	if err != nil {
		return -1
	}
	if !info.Dir {
		return info.Size
	}
	var sum int64
	err = filepath.WalkDir(filepath.FromSlash(name), func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		st, err := d.Info()
		if err == nil {
			sum += st.Size()
		}
		return err
	})
	if err != nil {
		return -1
	}
	return sum
}

// withoutTable is the place of PATH#TABLE.
func withoutTable(name string) string {
	if _, err := os.Lstat(name); err == nil {
		return name
	}
	if i := strings.LastIndexByte(name, '#'); i >= 0 {
		return name[:i]
	}
	return name
}
