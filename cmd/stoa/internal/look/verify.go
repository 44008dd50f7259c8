package look

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

var verifyForms = []string{"text", "json", "jsonl"}

// VerifyDoc is the document of verify -f json.
type VerifyDoc struct {
	Sources []string `json:"sources"`
	Depth   string   `json:"depth"`
	// no error was found; at the depth "seal", every byte is as it was sealed, which says nothing about damage before
	Healthy  bool                 `json:"healthy"`
	Errors   int                  `json:"errors"`
	Warnings int                  `json:"warnings"`
	Notes    int                  `json:"notes"`
	Findings []reading.FindingDoc `json:"findings"`
	// Incidents are the findings grouped by cause; each finding is in exactly one.
	Incidents []incidentDoc `json:"incidents"`

	unchecked   int                // notes about data without checksums
	unsound     int                // notes about tables that were damaged when they were sealed
	unsupported int                // errors about what may be intact (region.Finding)
	style       display.TableStyle // of the text
	allFindings bool
	held        []region.Finding        // to be grouped into incidents
	several     func(place string) bool // whether a place holds several tables; nil: irrelevant
	folded      int                     // findings that were not written, as they follow from one that was
}

func VerifyCmd(a *cli.App) *cobra.Command {
	src := source.SourceFlags{Verifies: true}
	var out output.OutputFlags
	var quick, deep, all bool
	var sealed string
	cmd := &cobra.Command{
		Use:   "verify PATH...",
		Short: "Find damage: where it is, and which rows it affects",
		Long: `Find what is damaged or unusual: in the structure (headers, footers, indexes, counts, bytes
that belong to nothing) and in the data, by their checksums. Data without checksums are decoded, because
nothing else would show damage. Each line is a finding: severity, code, location, message; stoa finding
CODE explains the code. The status is 3 if a finding is an error, but 1, as that of every other verb, if
all errors are about what stoa does not support, such as a codec: the data may be intact.

--quick checks only the structure, and reads no data. --deep also decodes every value, and compares all
with each other: indexes, min and max values, Bloom filters, dictionaries, deltas, counts. In a directory
that is not a table, every file is verified, at any depth; and so are files in a table's directory that
are not part of it.

Findings with one cause (one run of damaged bytes, or the same code many times in one part) are one
incident: the gravest is printed, and a line that sums up the others. -f json prints one object with all
findings and incidents, -f jsonl a line per finding.`,
		Example: `  stoa verify block.cfile
  stoa verify kudu data/ --deep -f json -o health.json`,
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Check(verifyForms); err != nil {
				return err
			}
			o, err := src.Options(cmd.Context(), a, args)
			switch {
			case err != nil:
				return err
			case quick && deep:
				return cli.WrongUse("--quick and --deep do not go together")
			case quick:
				o.Depth = format.Quick
			case !deep:
				o.Depth = format.Sums
			}
			o.Tree = store.Roots(cli.Tree{A: a, All: true})
			return verifyPaths(a, cmd, args, o, &out, sealed, all)
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "check only the structure, and read no data")
	cmd.Flags().BoolVar(&deep, "deep", false,
		"also decode every value, and compare indexes, bounds, filters and counts with them")
	cmd.Flags().StringVar(&sealed, "seal", "",
		"compare with `FILE`, which stoa seal wrote, byte for byte; with --deep, also the rows")
	cmd.Flags().BoolVar(&all, "all-findings", false,
		"print every finding, also those that are part of an incident")
	out.Register(cmd, verifyForms, "default text")
	src.Register(a, cmd)
	return cli.First(cmd, "quick", "deep", "format")
}

func verifyPaths(a *cli.App, cmd *cobra.Command, args []string, o stoa.OpenOptions, out *output.OutputFlags,
	sealed string,
	all bool) error {
	ctx := cmd.Context()
	a.Reads(args...)
	if sealed != "" {
		a.Reads(sealed)
	}
	if err := a.CheckOutputs(nil, out.File); err != nil {
		return err
	}
	doc := VerifyDoc{Sources: args, Depth: o.Depth.String(), Findings: []reading.FindingDoc{}, allFindings: all,
		several: severalTables(ctx, o)}
	if a.Tty {
		doc.style = output.StyleOf(a, out)
	}
	if sealed == "" {
		var err error
		if args, o, err = source.Together(a, ctx, args, o); err != nil {
			return err
		}
	}
	var failed error
	err := output.PutDoc(a, ctx, out, func(w io.Writer) error {
		if sealed != "" {
			doc.Depth = "seal"
			failed = verifySeal(a, ctx, sealed, args, o, out.Form, w, &doc)
			if err := doc.writeIncidents(out.Form, w); err != nil {
				return err
			}
			doc.Healthy = doc.Errors == 0 && failed == nil
			return doc.finish(a, out.Form, w, failed)
		}
		failed = source.EachPath(a, ctx, cmd, args, func(p string) error {
			failed := verifyPath(ctx, p, o, out.Form, w, &doc)
			if err := doc.writeIncidents(out.Form, w); err != nil {
				return err
			}
			return failed
		})
		if errors.Is(failed, cli.ErrEnough) || ctx.Err() != nil {
			return failed
		}
		doc.Healthy = doc.Errors == 0 && failed == nil
		return doc.finish(a, out.Form, w, failed)
	})
	if err == nil && doc.Errors > 0 {
		if failed != nil && len(args) == 1 {
			a.ReportError(cmd, failed)
		}
		if errors.Is(failed, fs.ErrPermission) || failed == cli.ErrRefused {
			return cli.ErrRefused
		}
		if doc.Errors == doc.unsupported {
			return cli.ErrFailed
		}
		return cli.ErrDamage
	}
	return errors.Join(err, failed)
}

// verifyPath adds the findings of one path. Damage that prevents a file from being opened is a finding, too.
func verifyPath(ctx context.Context, path string, o stoa.OpenOptions, form string, w io.Writer, doc *VerifyDoc) error {
	if err := inUse(ctx, path, o); err != nil {
		return err
	}
	for f, err := range stoa.Verify(ctx, path, o) {
		if err != nil {
			var ok bool
			if f, ok = findingOf(path, err); !ok {
				return err
			}
		}
		if err := doc.add(f, form, w); err != nil {
			return err
		}
	}
	return nil
}

// inUse returns an error if a server runs on the directory at path: files that the server is writing would look
// damaged.
func inUse(ctx context.Context, path string, o stoa.OpenOptions) error {
	place := cli.WithoutTable(path)
	f, err := stoa.Probe(ctx, format.Target{Tree: o.Tree, Name: place}, o)
	if err != nil || f.InUse == nil {
		return nil
	}
	if err := stoa.InUse(ctx, place, o); err != nil {
		return &cli.OpenError{Err: err}
	}
	return nil
}

func findingOf(path string, err error) (region.Finding, bool) {
	var e *fault.Error
	if !errors.As(err, &e) || e.Class != fault.Corrupt {
		return region.Finding{}, false
	}
	message := e.Reason
	if e.Cause != nil {
		message = strings.TrimPrefix(message+": "+e.Cause.Error(), ": ")
	}
	return region.Finding{Code: "file.unreadable", Severity: region.Error, At: e.At, Path: e.Path, Message: message,
		Part: path, Rows: [2]int64{-1, -1}, Lost: -1}, true
}

func (d *VerifyDoc) add(f region.Finding, form string, w io.Writer) error {
	switch f.Code {
	case "file.unchecked":
		d.unchecked++
	case "seal.unsound":
		d.unsound++
	}
	switch f.Severity {
	case region.Error:
		if d.Errors++; f.Class == fault.Unsupported {
			d.unsupported++
		}
	case region.Warning:
		d.Warnings++
	default:
		d.Notes++
	}
	switch form {
	case "json":
		d.Findings = append(d.Findings, reading.DocOfFinding(f))
		d.held = append(d.held, f)
		return nil
	case "jsonl":
		return output.WriteLines(w, []reading.FindingDoc{reading.DocOfFinding(f)})
	}
	d.held = append(d.held, f)
	if len(d.held) < maxHeld {
		return nil
	}
	return d.writeIncidents(form, w)
}

// finish writes the end of the report.
func (d *VerifyDoc) finish(a *cli.App, form string, w io.Writer, failed error) error {
	switch {
	case form == "json":
		d.Incidents = d.incidentDocs()
		b, err := indented(d)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	case form == "jsonl" || a.Quiet || failed != nil && d.total() == 0:
		return nil
	case d.Depth == "seal" && d.total() == d.unsound:
		_, err := fmt.Fprintf(w, "%s: unchanged since the seal (which says nothing about damage from before it)\n",
			display.OneLine(strings.Join(d.Sources, ", ")))
		return err
	case d.total() == d.unchecked:
		looked := depthText[d.Depth]
		if d.unchecked > 0 {
			looked = " as far as can be told (structure, and values that decode; there are no checksums, or not " +
				"everywhere)"
		}
		_, err := fmt.Fprintf(w, "%s: healthy%s\n", display.OneLine(strings.Join(d.Sources, ", ")), looked)
		return err
	}
	more := ""
	if d.folded > 0 {
		more = fmt.Sprintf("; %s not written, as they follow from others (--all-findings writes them)",
			display.Thousands(int64(d.folded)))
	}
	_, err := fmt.Fprintf(w, "%s: %s, %s, %s%s\n", display.Count(int64(d.total()), "finding"),
		display.Count(int64(d.Errors), "error"), display.Count(int64(d.Warnings), "warning"),
		display.Count(int64(d.Notes), "note"), more)
	return err
}

// depthText says what "healthy" means at each depth.
var depthText = map[string]string{
	format.Quick.String(): " (structure; no data was read)",
	format.Sums.String():  " (structure and checksums; --deep decodes every value)",
	format.Deep.String():  "",
}

func (d *VerifyDoc) total() int { return d.Errors + d.Warnings + d.Notes }
