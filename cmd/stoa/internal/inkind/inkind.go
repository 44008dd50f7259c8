// Package inkind is rescue --in-kind: it writes mended directories of damaged servers.
package inkind

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// Options say what is mended, and where it goes.
type Options struct {
	Roots  []string
	Dir    string // of the output
	Server string // the beginning of the UUID of the only server to write; "": all that are damaged
	Form   string // "json", or text
	Open   stoa.OpenOptions
}

// run is a run of the verb.
type run struct {
	a *cli.App
	o Options
}

// document is what -f json prints of rescue --in-kind.
type document struct {
	Stoa    string                `json:"stoa"`
	Output  string                `json:"output"`
	Servers []format.MendedServer `json:"servers"`
	Errors  []string              `json:"errors"` // of verifying what was written or, if nothing was, the place
	Whole   bool                  `json:"whole"`
}

// Write writes mended copies of the directories of damaged servers.
func Write(ctx context.Context, a *cli.App, o Options) error {
	r, oo := &run{a, o}, o.Open
	tree, place, err := store.Joined(oo.Tree, o.Roots)
	if err != nil {
		return cli.WrongUse("%v", err)
	}
	f, err := stoa.Probe(ctx, format.Target{Tree: tree, Name: place}, oo)
	if err != nil {
		return &cli.OpenError{Err: err}
	}
	i := slices.IndexFunc(r.a.Formats, func(x format.Format) bool { return x.Mend != nil && x.System() == f.System() })
	if i < 0 {
		return cli.WrongUse("--in-kind mends servers of Kudu, and %s is %s", strings.Join(o.Roots, ", "), f.Name)
	}
	sink := store.Strict(store.Local{}.Sink(o.Dir, nil))
	doc := document{Stoa: "rescue --in-kind", Output: o.Dir, Errors: []string{}, Whole: true}
	doc.Servers, err = r.a.Formats[i].Mend(ctx, format.Target{Tree: tree, Name: place}, format.MendOptions{Sink: sink,
		Server: o.Server, OpenOptions: format.OpenOptions{Limits: oo.Limits, NoVerify: oo.NoVerify, Opts: oo.Opts}})
	written := doc.count()
	if err == nil && written > 0 {
		err = sink.Commit(ctx)
	}
	if err != nil || written == 0 {
		sink.Abort(ctx)
	}
	if err != nil {
		return err
	}
	for _, s := range doc.Servers {
		if s.Dir != "" {
			if err := r.verify(ctx, &doc, filepath.Join(o.Dir, s.Dir), stoa.OpenOptions{}); err != nil {
				return err
			}
		}
	}
	if len(doc.Servers) == 0 { // of copies of a server one is whole; the others may be damaged
		oo.Tree = tree
		if err := r.verify(ctx, &doc, place, oo); err != nil {
			return err
		}
	}
	if err := doc.write(r.a, o.Form); err != nil {
		return err
	}
	if !doc.Whole {
		return cli.ErrDamage
	}
	return nil
}

// count returns the number of servers that were written, and sets Whole.
func (d *document) count() (written int) {
	for _, s := range d.Servers {
		if d.Whole = d.Whole && len(s.Unknown) == 0; s.Dir != "" {
			written++
		}
	}
	return written
}

// verify verifies what was written or, if nothing was, the place.
func (r *run) verify(ctx context.Context, doc *document, place string, oo stoa.OpenOptions) error {
	oo.Formats = r.a.Formats
	for x, err := range stoa.Verify(ctx, place, oo) {
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
		if err != nil {
			x = region.Finding{Severity: region.Error, Message: err.Error()}
		}
		// a server alone has not all tablets of its tables
		if x.Severity >= region.Error && x.Code != "kudu.tablet.missing" {
			doc.Errors, doc.Whole = append(doc.Errors, x.At.String()+": "+x.Message), false
		}
	}
	return nil
}

// write prints the document.
func (d *document) write(a *cli.App, form string) error {
	if form == "json" {
		e := json.NewEncoder(a.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(d)
	}
	var b strings.Builder
	wrong := "wrong in what was written"
	if len(d.Servers) == 0 {
		what := "no server is damaged, as far as its blocks, logs and metadata show"
		if wrong = "damaged"; !d.Whole {
			what = "nothing was written: a whole copy of each server is here, and these are damaged"
		}
		fmt.Fprintln(&b, what)
	}
	for _, s := range d.Servers {
		if s.Dir != "" {
			fmt.Fprintf(&b, "%s: %s\n", filepath.Join(d.Output, s.Dir), display.Count(int64(len(s.Parts)), "tablet"))
		} else {
			fmt.Fprintf(&b, "%s: nothing was written\n", cmp.Or(s.Server, "a server without a UUID"))
		}
		for _, p := range s.Parts {
			switch {
			case p.Other:
				fmt.Fprintf(&b, "  %s of %s: copied from %s: %s\n", p.ID, p.Table, p.From, p.Why)
			case p.Twins > 0:
				fmt.Fprintf(&b, "  %s of %s: %d of its %d blocks come from copies\n", p.ID, p.Table, p.Twins, p.Blocks)
			}
		}
		for _, u := range s.Unknown {
			fmt.Fprintf(&b, "  not mended: %s\n", u)
		}
	}
	for _, e := range d.Errors {
		fmt.Fprintf(&b, "%s: %s\n", wrong, e)
	}
	_, err := a.Stdout.Write([]byte(b.String()))
	return err
}
