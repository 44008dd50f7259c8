package reading

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
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/fault"
	"stoa/region"
)

// DamageFlags determine the handling of data that cannot be read.
type DamageFlags struct {
	Damaged  string
	Manifest string
	Losses   []region.Loss
	Later    bool // the losses are reported elsewhere
	Wide     bool // rows have several columns
}

var policies = []string{"fail", "skip-rows", "null-cells"}

func (f *DamageFlags) Register(cmd *cobra.Command, preset string) {
	cmd.Flags().StringVar(&f.Damaged, "damaged", preset,
		"what to do with cells that cannot be read: `POLICY` is fail, skip-rows (leave out their rows) or "+
			"null-cells (make them null)")
	cmd.Flags().StringVar(&f.Manifest, "manifest", "",
		"write what was lost to `FILE`, as JSON; without it, losses are listed on standard error")
	cli.Complete(cmd, "damaged", func() []string { return policies })
}

// Apply sets the policy of a scan, which then reports its losses to f.
func (f *DamageFlags) Apply(s *stoa.ScanSpec) error {
	if err := f.Check(); err != nil {
		return err
	}
	s.Damaged = []stoa.Damaged{stoa.Fail, stoa.SkipRows, stoa.NullCells}[slices.Index(policies, f.Damaged)]
	s.Lost = f.lose
	return nil
}

// Nulls reports whether rows stay of which cells cannot be read.
func (f *DamageFlags) Nulls() bool { return f.Damaged == "null-cells" }

// Check returns an error if there is no such policy.
func (f *DamageFlags) Check() error {
	if !slices.Contains(policies, f.Damaged) {
		return &cli.UseError{Message: fmt.Sprintf("--damaged: there is no policy %q", f.Damaged),
			Hint: "the policies are " + strings.Join(policies, ", ")}
	}
	return nil
}

// lose records a loss.
func (f *DamageFlags) lose(l region.Loss) { f.Losses = region.Keep(f.Losses, l) }

// manifestLoss is region.Loss in the manifest.
type manifestLoss struct {
	Part   string `json:"part"`
	Group  int    `json:"group"`
	Name   string `json:"name,omitempty"`   // the format's name for the group
	Column string `json:"column,omitempty"` // of the table
	Stored string `json:"stored,omitempty"` // the format's name for the part of the column
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
	Findings []FindingDoc   `json:"findings"`
	Losses   []manifestLoss `json:"losses"`
}

// Unmet returns the losses that no scan meets: the columns that recovered tables are without, and the rows that are or
// may be missing from the sum.
func Unmet(findings []region.Finding) (out []region.Loss) {
	for _, x := range findings {
		if x.Gone || ofSum(x) && x.Lost != 0 {
			out = append(out, region.Loss{Part: x.Part, Column: x.Column, Rows: x.Rows, Exact: x.Lost >= 0,
				Err: fault.Corruptf(x.At, x.Path, "%s", x.Message)})
		}
	}
	return out
}

// ofSum reports whether a finding is about the sum of all rows: those that came out and those reported as lost.
func ofSum(f region.Finding) bool { return strings.HasPrefix(f.Code, "output.rows.") }

// sumFirst returns the findings with those about the sum of all rows before the others.
func sumFirst(findings []region.Finding) []region.Finding {
	out := slices.DeleteFunc(slices.Clone(findings), func(f region.Finding) bool { return !ofSum(f) })
	return append(out, slices.DeleteFunc(slices.Clone(findings), ofSum)...)
}

// Report reports what was noticed and what was lost, after a scan that ended with err. It returns err, or cli.ErrDamage
// if something was lost.
func (f *DamageFlags) Report(ctx context.Context, a *cli.App, sources []string, findings []region.Finding,
	err error) error {
	ReportFindings(a, findings)
	if f.Manifest != "" {
		if werr := WriteManifest(a, ctx, f.Manifest, f.Document(sources, findings, err),
			slices.Concat(f.Losses, Unmet(findings))); werr != nil {
			return errors.Join(err, werr)
		}
	} else if !f.Later {
		f.print(a)
	}
	if read(err) && len(f.Losses) > 0 {
		if f.Manifest != "" {
			a.Warn("stoa: %s; see %s", f.summary(), f.Manifest)
		}
		if f.leftCells() {
			a.Note("  --damaged null-cells keeps these rows, with null for the cells that are lost")
		}
		return cli.ErrDamage
	}
	if read(err) && Damaged(findings) {
		return cli.ErrDamage
	}
	return err
}

// read reports whether reading succeeded, though perhaps not to the end: a consumer that stopped early does not undo
// damage that was met.
func read(err error) bool { return err == nil || errors.Is(err, cli.ErrEnough) }

// leftCells reports whether rows were left out whose other columns may be intact.
func (f *DamageFlags) leftCells() bool {
	return f.Damaged == "skip-rows" && f.Wide &&
		slices.ContainsFunc(f.Losses, func(l region.Loss) bool { return l.Column != "" })
}

// Document returns the manifest of a scan that ended with err, without the losses.
func (f *DamageFlags) Document(sources []string, findings []region.Finding, err error) manifest {
	m := manifest{Sources: sources, Policy: f.Damaged, Finished: err == nil, Findings: []FindingDoc{},
		Losses: []manifestLoss{}}
	if err != nil {
		m.Error = cli.InFlags(cli.Line(err))
	}
	seen := map[region.Finding]bool{} // opening and reading may report the same
	for _, x := range sumFirst(findings) {
		if !seen[x] {
			m.Findings = append(m.Findings, DocOfFinding(x))
		}
		seen[x] = true
	}
	return m
}

// NoticedIn reports what was noticed in a table of which no rows are printed. It returns err, or cli.ErrDamage if the
// table is not whole.
func NoticedIn(a *cli.App, findings []region.Finding, err error) error {
	ReportFindings(a, findings)
	if read(err) && Damaged(findings) {
		return cli.ErrDamage
	}
	return err
}

// ReportFindings prints findings on standard error, without duplicates: those above notes, with -v all, with -q only
// errors. Of very many only the first are printed, among them those about the sum of all rows; of more than three
// about bytes that differ only in their places, messages and rows only one.
func ReportFindings(a *cli.App, findings []region.Finding) {
	const maxLines, maxLike = 20, 3
	n, told := 0, []region.Finding(nil)
	for _, f := range sumFirst(findings) {
		if f.Severity == region.Note && !a.Verbose || f.Severity < region.Error && a.Quiet || !a.FirstReport(f) {
			continue
		}
		told = append(told, f)
	}
	like := map[region.Finding]int{}
	for _, f := range told {
		like[kind(f)]++
	}
	for _, f := range told {
		k, more := kind(f), ""
		switch m := like[k]; {
		case a.Verbose || f.At.Len <= 0 || m <= maxLike && m > 0:
		case m < 0:
			continue
		default:
			like[k] = -1
			more = fmt.Sprintf("; and %s like it", display.Thousands(int64(m-1)))
		}
		if n++; n <= maxLines || a.Verbose {
			a.Warn("%s%s", FindingLine(f), more)
		}
	}
	if n > maxLines && !a.Verbose {
		a.Warn("  … and %d more; stoa verify lists all that is wrong", n-maxLines)
	}
}

// kind returns a finding without its position, message and rows.
func kind(f region.Finding) region.Finding {
	return region.Finding{Code: f.Code, Severity: f.Severity, At: fault.Span{Object: f.At.Object}, Part: f.Part,
		Table: f.Table, Column: f.Column}
}

// WriteManifest writes the manifest m with losses. There may be very many, so they are written one by one.
func WriteManifest(a *cli.App, ctx context.Context, file string, m manifest, losses []region.Loss) error {
	w, err := a.Create(ctx, file)
	if err != nil {
		return err
	}
	defer w.Abort(ctx)
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
	return w.Commit(ctx)
}

// print prints the losses on standard error, or only the first if there are very many.
func (f *DamageFlags) print(a *cli.App) {
	const maxLines = 20
	if len(f.Losses) == 0 {
		return
	}
	for i, l := range f.Losses {
		if i == maxLines && !a.Verbose {
			a.Note("  … and %d more; --manifest FILE writes them all", len(f.Losses)-maxLines)
			break
		}
		a.Note("lost: %s", LossLine(l))
	}
	a.Warn("stoa: %s", f.summary())
}

// LossLine returns rows, column and reason. It names the part unless the reason does.
func LossLine(l region.Loss) string {
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
		s += ": " + cli.Line(l.Err)
	}
	return display.OneLine(s)
}

// summary counts the losses. Rows that are lost in several columns count once.
func (f *DamageFlags) summary() string {
	rows, exact := region.LostRows(f.Losses)
	if !exact {
		return fmt.Sprintf("rows were lost: %s that can be counted, and more", display.Count(rows, "row"))
	}
	return fmt.Sprintf("%s could not be read whole", display.Count(rows, "row"))
}

func docOfLoss(l region.Loss) manifestLoss {
	d := manifestLoss{Part: l.Part, Group: l.Group, Name: l.Name, Column: l.Column, Stored: l.Stored, Exact: l.Exact,
		From: Known(l.Rows[0]), To: Known(l.Rows[1])}
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

// Known converts a number for JSON: null if it is not known.
func Known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
