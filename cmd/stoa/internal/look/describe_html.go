package look

import (
	"context"
	"io"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/format"
	"stoa/serve"
)

// describePage writes a page of one file: its anatomy, and what is found by its structure and checksums.
func describePage(a *cli.App, ctx context.Context, args []string, o stoa.DescribeOptions,
	out *output.OutputFlags) error {
	if len(args) != 1 {
		return cli.WrongUse("-f html is a page of one file; %d are given", len(args))
	}
	if a.Tty && !out.ToFile() {
		return &cli.UseError{Message: "html is not for a terminal", Hint: "use -o FILE or a pipe"}
	}
	name := args[0]
	info, err := o.Tree.Stat(ctx, name)
	switch {
	case err != nil:
		return err
	case info.Dir:
		return &cli.UseError{Message: "-f html is a page of one file; " + name + " is a directory",
			Hint: "stoa serve " + name + " shows all of it"}
	}
	if err := cli.CheckOutput(out.File, []stoa.SourceInfo{{Name: name}}); err != nil {
		return err
	}
	page := serve.FilePage{}
	if page.Anatomy, err = serve.Describe(ctx, name, info.Size, o); err != nil {
		return err
	}
	if page.Findings, err = findingDocs(ctx, name, o.OpenOptions); err != nil {
		return err
	}
	if info.Size <= serve.MaxPageBytes {
		src, err := o.Tree.Open(ctx, name)
		if err != nil {
			return err
		}
		defer src.Close()
		page.Bytes = make([]byte, info.Size)
		if _, err := src.ReadAt(ctx, page.Bytes, 0); err != nil && err != io.EOF {
			return err
		}
	}
	if err := output.PutDoc(a, ctx, out, page.Write); err != nil || page.Anatomy.Problem == "" {
		return err
	}
	a.Warn("stoa: %s", page.Anatomy.Problem)
	return cli.ErrDamage
}

// findingDocs returns what verify finds in a file by its structure and checksums.
func findingDocs(ctx context.Context, name string, o stoa.OpenOptions) ([]reading.FindingDoc, error) {
	docs := []reading.FindingDoc{}
	o.Depth = format.Sums
	for f, err := range stoa.Verify(ctx, name, o) {
		if err != nil {
			found, ok := findingOf(name, err)
			if !ok {
				return nil, err
			}
			f = found
		}
		docs = append(docs, reading.DocOfFinding(f))
	}
	return docs, nil
}
