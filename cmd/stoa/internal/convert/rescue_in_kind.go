package convert

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

	"github.com/spf13/cobra"
)

// inKindFlags are the flags of rescue --in-kind.
type inKindFlags struct {
	on     bool
	server string
}

func (f *inKindFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.on, "in-kind", false, "write mended directories of damaged Kudu servers instead of tables")
	cmd.Flags().StringVar(&f.server, "server", "",
		"with --in-kind: write only the server whose UUID begins with `UUID`")
}

// inKindDoc is what -f json prints of rescue --in-kind.
type inKindDoc struct {
	Stoa    string                `json:"stoa"`
	Output  string                `json:"output"`
	Servers []format.MendedServer `json:"servers"`
	Errors  []string              `json:"errors"` // of verifying what was written or, if nothing was, the place
	Whole   bool                  `json:"whole"`
}

// inKind writes mended copies of the directories of damaged servers.
func (r *rescue) inKind(ctx context.Context, k inKindFlags) error {
	if !k.on {
		return cli.WrongUse("--server goes with --in-kind")
	}
	for _, flag := range []string{"to", "file-size", "at", "resume", "opt", "no-check", "damaged", "parallel"} {
		if r.cmd.Flags().Changed(flag) {
			return cli.WrongUse("--in-kind writes directories as the servers have them: it has no --%s", flag)
		}
	}
	oo, _, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	tree, place, err := store.Joined(oo.Tree, r.roots)
	if err != nil {
		return cli.WrongUse("%v", err)
	}
	f, err := stoa.Probe(ctx, format.Target{Tree: tree, Name: place}, oo)
	if err != nil {
		return &cli.OpenError{Err: err}
	}
	i := slices.IndexFunc(r.a.Formats, func(x format.Format) bool { return x.Mend != nil && x.System() == f.System() })
	if i < 0 {
		return cli.WrongUse("--in-kind mends servers of Kudu, and %s is %s", strings.Join(r.roots, ", "), f.Name)
	}
	sink := store.Strict(store.Local{}.Sink(r.dir, nil))
	doc := inKindDoc{Stoa: "rescue --in-kind", Output: r.dir, Errors: []string{}, Whole: true}
	doc.Servers, err = r.a.Formats[i].Mend(ctx, format.Target{Tree: tree, Name: place}, format.MendOptions{Sink: sink,
		Server: k.server, OpenOptions: format.OpenOptions{Limits: oo.Limits, NoVerify: oo.NoVerify, Opts: oo.Opts}})
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
			if err := r.verifyInKind(ctx, &doc, filepath.Join(r.dir, s.Dir), stoa.OpenOptions{}); err != nil {
				return err
			}
		}
	}
	if len(doc.Servers) == 0 { // of copies of a server one is whole; the others may be damaged
		oo.Tree = tree
		if err := r.verifyInKind(ctx, &doc, place, oo); err != nil {
			return err
		}
	}
	if err := doc.write(r.a, r.doc.form); err != nil {
		return err
	}
	if !doc.Whole {
		return cli.ErrDamage
	}
	return nil
}

// count returns the number of servers that were written, and sets Whole.
func (d *inKindDoc) count() (written int) {
	for _, s := range d.Servers {
		if d.Whole = d.Whole && len(s.Unknown) == 0; s.Dir != "" {
			written++
		}
	}
	return written
}

// verifyInKind verifies what was written or, if nothing was, the place.
func (r *rescue) verifyInKind(ctx context.Context, doc *inKindDoc, place string, oo stoa.OpenOptions) error {
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
func (d *inKindDoc) write(a *cli.App, form string) error {
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
