package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/fault"
	"stoa/region"
)

// damageFlags say what happens to what cannot be read.
type damageFlags struct {
	damaged  string
	manifest string
	losses   []region.Loss
	later    bool // the losses are told elsewhere
	wide     bool // rows have several columns
}

var policies = []string{"fail", "skip-rows", "null-cells"}

func (f *damageFlags) register(cmd *cobra.Command, preset string) {
	cmd.Flags().StringVar(&f.damaged, "damaged", preset,
		"what to do about cells that cannot be read, a `POLICY`: fail, skip-rows or null-cells")
	cmd.Flags().StringVar(&f.manifest, "manifest", "",
		"write what was lost to `FILE`, as JSON, instead of to standard error")
	complete(cmd, "damaged", func() []string { return policies })
}

// apply sets the policy of a scan, which then tells f of its losses.
func (f *damageFlags) apply(s *stoa.ScanSpec) error {
	i := slices.Index(policies, f.damaged)
	if i < 0 {
		return &useError{fmt.Sprintf("--damaged: there is no policy %q", f.damaged),
			"the policies are " + strings.Join(policies, ", ")}
	}
	s.Damaged = []stoa.Damaged{stoa.Fail, stoa.SkipRows, stoa.NullCells}[i]
	s.Lost = f.lose
	return nil
}

// lose keeps a loss.
func (f *damageFlags) lose(l region.Loss) { f.losses = region.Keep(f.losses, l) }

// manifestLoss is region.Loss as the manifest has it.
type manifestLoss struct {
	Part   string `json:"part"`
	Group  int    `json:"group"`
	Name   string `json:"name,omitempty"`   // of the group, as the format calls it
	Column string `json:"column,omitempty"` // of the table
	Stored string `json:"stored,omitempty"` // what of it, as the format calls that
	From   *int64 `json:"from"`
	To     *int64 `json:"to"`
	Exact  bool   `json:"exact"`
	Class  string `json:"class,omitempty"`
	Object string `json:"object,omitempty"`
	Offset *int64 `json:"offset,omitempty"`
	Length *int64 `json:"length,omitempty"`
	Path   string `json:"path,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// manifest is the document of --manifest.
type manifest struct {
	Sources  []string       `json:"sources"`
	Policy   string         `json:"policy"`
	Finished bool           `json:"finished"` // the source was read to its end; losses may still be listed
	Error    string         `json:"error,omitempty"`
	Findings []findingDoc   `json:"findings"`
	Losses   []manifestLoss `json:"losses"`
}

// report says what was noticed and what was lost, after a scan that ended with err. It returns err, or
// errDamage if something was lost.
func (f *damageFlags) report(ctx context.Context, a *app, sources []string, findings []region.Finding,
	err error) error {
	a.tellFindings(findings)
	if f.manifest != "" {
		if werr := a.writeManifest(ctx, f.manifest, f.document(sources, findings, err), f.losses); werr != nil {
			return errors.Join(err, werr)
		}
	} else if !f.later {
		f.print(a)
	}
	if read(err) && len(f.losses) > 0 {
		if f.manifest != "" {
			a.alarm("stoa: %s; see %s", f.summary(), f.manifest)
		}
		if f.leftCells() {
			a.note("  --damaged null-cells keeps these rows, with null for the cells that are lost")
		}
		return errDamage
	}
	if read(err) && damaged(findings) {
		return errDamage
	}
	return err
}

// read reports whether what was read, perhaps not to its end, could be: a reader that had enough does not undo
// the damage that was met.
func read(err error) bool { return err == nil || errors.Is(err, errEnough) }

// leftCells reports whether rows were left out of which other columns may be whole.
func (f *damageFlags) leftCells() bool {
	return f.damaged == "skip-rows" && f.wide &&
		slices.ContainsFunc(f.losses, func(l region.Loss) bool { return l.Column != "" })
}

// document is the manifest of a scan that ended with err, but for the losses.
func (f *damageFlags) document(sources []string, findings []region.Finding, err error) manifest {
	m := manifest{Sources: sources, Policy: f.damaged, Finished: err == nil, Findings: []findingDoc{},
		Losses: []manifestLoss{}}
	if err != nil {
		m.Error = line(err)
	}
	for _, x := range findings {
		m.Findings = append(m.Findings, docOfFinding(x))
	}
	return m
}

// noticed tells what was noticed of a table of which no row was printed. It returns err, or errDamage if the
// table is not whole.
func (a *app) noticed(findings []region.Finding, err error) error {
	a.tellFindings(findings)
	if read(err) && damaged(findings) {
		return errDamage
	}
	return err
}

// tellFindings tells findings on standard error, once each: those that are more than notes, with -v all, with
// -q errors. Of very many some.
func (a *app) tellFindings(findings []region.Finding) {
	const most = 20
	n := 0
	for _, f := range findings {
		if f.Severity == region.Note && !a.verbose || f.Severity < region.Error && a.quiet || a.told[f] {
			continue
		}
		if a.told == nil {
			a.told = map[region.Finding]bool{}
		}
		a.told[f] = true
		if n++; n <= most || a.verbose {
			a.alarm("%s", findingLine(f))
		}
	}
	if n > most && !a.verbose {
		a.alarm("  … and %d more; stoa verify lists all that is wrong", n-most)
	}
}

// writeManifest writes the manifest m of losses. They may be very many, and are written one by one.
func (a *app) writeManifest(ctx context.Context, file string, m manifest, losses []region.Loss) error {
	w, err := a.create(ctx, file)
	if err != nil {
		return err
	}
	defer w.abort(ctx)
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	head := b[:len(b)-len("]\n}")] // losses are the last field
	out := bufio.NewWriterSize(w, 64<<10)
	out.Write(head)
	for i, l := range losses {
		if b, err = json.MarshalIndent(docOfLoss(l), "    ", "  "); err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		out.Write(b)
	}
	if len(losses) > 0 {
		out.WriteString("\n  ")
	}
	out.WriteString("]\n}\n")
	if err := out.Flush(); err != nil {
		return err
	}
	return w.commit(ctx)
}

// print tells the losses on standard error: not all of them when there are very many.
func (f *damageFlags) print(a *app) {
	const most = 20
	if len(f.losses) == 0 {
		return
	}
	for i, l := range f.losses {
		if i == most && !a.verbose {
			a.note("  … and %d more; --manifest FILE writes them all", len(f.losses)-most)
			break
		}
		a.note("lost: %s", lossLine(l))
	}
	a.alarm("stoa: %s", f.summary())
}

// lossLine is rows, column and reason. The part is named unless the reason names it anyway.
func lossLine(l region.Loss) string {
	var parts []string
	var e *fault.Error
	if !errors.As(l.Err, &e) || e.At.Object != l.Part {
		parts = append(parts, l.Part)
	}
	if l.Name != "" {
		parts = append(parts, l.Name)
	} else if l.Group > 0 {
		parts = append(parts, fmt.Sprintf("group %d", l.Group))
	}
	switch {
	case l.Rows[0] >= 0 && l.Rows[1] >= 0:
		parts = append(parts, fmt.Sprintf("rows %d:%d", l.Rows[0], l.Rows[1]))
	case l.Rows[0] >= 0:
		parts = append(parts, fmt.Sprintf("rows from %d on", l.Rows[0]))
	default:
		parts = append(parts, "some rows")
	}
	if l.Column != "" {
		parts = append(parts, "of column "+l.Column)
		if l.Stored != "" {
			parts = append(parts, "("+l.Stored+")")
		}
	}
	s := strings.Join(parts, " ")
	if l.Err != nil {
		s += ": " + line(l.Err)
	}
	return oneLine(s)
}

// summary counts what was lost. Rows that are lost in several columns count once.
func (f *damageFlags) summary() string {
	rows, exact := region.LostRows(f.losses)
	if !exact {
		return fmt.Sprintf("rows were lost: %s that can be counted, and more", count(rows, "row"))
	}
	return fmt.Sprintf("%s could not be read whole", count(rows, "row"))
}

func docOfLoss(l region.Loss) manifestLoss {
	d := manifestLoss{Part: l.Part, Group: l.Group, Name: l.Name, Column: l.Column, Stored: l.Stored, Exact: l.Exact,
		From: known(l.Rows[0]), To: known(l.Rows[1])}
	var e *fault.Error
	switch {
	case errors.As(l.Err, &e):
		d.Class, d.Object, d.Path, d.Reason = e.Class.Error(), e.At.Object, e.Path, e.Reason
		if e.Cause != nil {
			d.Reason = strings.TrimPrefix(d.Reason+": "+e.Cause.Error(), ": ")
		}
		if e.At.Object != "" {
			d.Offset, d.Length = &e.At.Off, &e.At.Len
		}
	case l.Err != nil:
		d.Reason = l.Err.Error()
	}
	return d
}

// known is a number for JSON: null if it is not known.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
