// Package report writes the reports of a run in three forms.
package report

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
)

// The names of the reports in the directory of the output.
const JSON, HTML, Text = "report.json", "report.html", "report.txt"

// Names are these names, which no table in that directory may have.
var Names = []string{JSON, HTML, Text}

// Doc is a report in three forms.
type Doc interface {
	JSON() ([]byte, error)
	Text() ([]byte, error)
	HTML() ([]byte, error)
}

// Write writes a report in its forms to a directory, and prints it in one of them.
func Write(ctx context.Context, a *cli.App, dir string, doc Doc, form string) error {
	forms := []struct {
		name  string
		bytes func() ([]byte, error)
	}{{JSON, doc.JSON}, {Text, doc.Text}, {HTML, doc.HTML}}
	for _, f := range forms {
		b, err := f.bytes()
		if err != nil {
			return err
		}
		if err := putFile(ctx, a, filepath.Join(dir, f.name), b); err != nil {
			return err
		}
	}
	return Print(a, doc, form)
}

// Taken returns an error if a report would replace a file in a directory of this machine that is not of an earlier
// report.
func Taken(dir string) error {
	var own struct{ Stoa string }
	if b, err := os.ReadFile(filepath.Join(dir, JSON)); err == nil && json.Unmarshal(b, &own) == nil &&
		(own.Stoa == "rescue" || own.Stoa == "migrate") {
		return nil
	}
	for _, name := range Names {
		name = filepath.Join(dir, name)
		if _, err := os.Lstat(name); err == nil {
			return &cli.UseError{Message: name + " is there already, and is no report of stoa: it is not replaced",
				Hint: "choose another directory"}
		}
	}
	return nil
}

// Print prints a report.
func Print(a *cli.App, doc Doc, form string) error {
	shown := doc.Text
	if form == "json" {
		shown = doc.JSON
	}
	b, err := shown()
	if err == nil {
		_, err = a.Stdout.Write(b)
	}
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// putFile writes a file completely or not at all.
func putFile(ctx context.Context, a *cli.App, name string, b []byte) error {
	p, err := a.Create(ctx, (&output.OutputFlags{File: name}).Path())
	if err != nil {
		return err
	}
	defer p.Abort(ctx)
	if _, err := p.Write(b); err != nil {
		return err
	}
	return p.Commit(ctx)
}
