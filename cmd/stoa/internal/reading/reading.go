package reading

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/region"
)

// Reading is the part that the verbs that print rows have in common.
type Reading struct {
	source.SourceFlags
	source.SelectFlags
	DamageFlags
	output.OutputFlags

	Whole bool // unless rows or columns are selected, all are read: a read under a damage policy is a recovery
}

func (r *Reading) Register(a *cli.App, cmd *cobra.Command) {
	r.SelectFlags.Register(a, cmd, &r.SourceFlags)
	r.RegisterMemory(cmd)
	r.OutputFlags.Register(cmd, output.RowForms, "default: what the extension of -o says, else table (vertical if it "+
		"is too wide) on a terminal and jsonl elsewhere")
	r.DamageFlags.Register(cmd, "fail")
	r.SourceFlags.Register(a, cmd)
}

// Spec returns the scan that the flags describe.
func (r *Reading) Spec() (stoa.ScanSpec, error) {
	s, err := r.SelectFlags.Spec()
	if err != nil {
		return s, err
	}
	err = r.DamageFlags.Apply(&s)
	return s, err
}

// WholeScan returns the unmodified scan.
func WholeScan(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) (cli.Batches, error) {
	return t.Scan(ctx, spec), nil
}

// Run opens the paths as one table, and writes the rows that the function rows returns for it and the flags.
func (r *Reading) Run(ctx context.Context, a *cli.App, paths []string,
	rows func(context.Context, *stoa.Table, stoa.ScanSpec) (cli.Batches, error)) error {
	form, err := r.RowForm(a)
	if err != nil {
		return err
	}
	spec, err := r.Spec()
	if err != nil {
		return err
	}
	t, err := r.openDamaged(ctx, a, paths)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := a.CheckOutputs(t.Sources(), r.File, r.Manifest); err != nil {
		return err
	}
	if spec.Columns, err = source.ExpandColumns(t.Schema().Fields(), spec.Columns); err != nil {
		return err
	}
	altered, err := r.write(ctx, a, form, t, spec, rows)
	noticed := append(t.Findings(), altered...)
	if f, ferr := t.Undeclared(ctx); f != nil && read(err) {
		noticed = append(noticed, *f)
	} else if err == nil {
		err = ferr
	}
	if err == nil && r.Damaged != "fail" && r.Whole {
		var more []region.Finding
		more, err = r.doubts(ctx, a, paths, spec, noticed)
		noticed = append(noticed, more...)
	}
	return r.DamageFlags.Report(ctx, a, paths, noticed, err)
}

// doubts returns what verify knows of a table that was read whole.
func (r *Reading) doubts(ctx context.Context, a *cli.App, paths []string, spec stoa.ScanSpec,
	noticed []region.Finding) ([]region.Finding, error) {
	if spec.Filter != nil || spec.Limit > 0 || len(spec.Columns) > 0 || r.SelectFlags.Rows != "" {
		return nil, nil
	}
	o, err := r.Options(ctx, a, paths)
	if err != nil {
		return nil, err
	}
	return r.Doubts(ctx, paths, o, noticed)
}

// openDamaged opens the paths as one table. If the damage policy allows rows to be lost, sources that cannot be opened
// are opened as recover does.
func (r *Reading) openDamaged(ctx context.Context, a *cli.App, paths []string) (*stoa.Table, error) {
	o, err := r.Options(ctx, a, paths)
	if err != nil {
		return nil, err
	}
	t, err := source.OpenAll(a, ctx, paths, o)
	if r.Damaged == "fail" || !errors.Is(err, fault.Corrupt) {
		return t, err
	}
	o.Recover = true
	if t, again := source.OpenAll(a, ctx, paths, o); again == nil {
		return t, nil
	}
	return nil, err
}

func (r *Reading) write(ctx context.Context, a *cli.App, form string, t *stoa.Table, spec stoa.ScanSpec,
	rows func(context.Context, *stoa.Table, stoa.ScanSpec) (cli.Batches, error)) ([]region.Finding, error) {
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return nil, err
	}
	r.Wide = sc.NumFields() > 1
	if r.Within, err = r.AllLimits(); err != nil {
		return nil, err
	}
	seq, err := rows(ctx, t, spec)
	if err != nil {
		return nil, err
	}
	return WriteRows(a, ctx, &r.OutputFlags, form, sc, seq)
}

// WriteRows writes rows of schema sc. It returns findings about values that the output does not hold unchanged; the
// output exists, and the caller reports the findings with the status that they imply.
func WriteRows(a *cli.App, ctx context.Context, out *output.OutputFlags, form string, sc *arrow.Schema,
	seq cli.Batches) ([]region.Finding, error) {
	w, err := output.OpenRowWriter(a, ctx, out, form, sc)
	if err != nil {
		return nil, err
	}
	var missing *cli.MissingError
	if err = CopyRows(ctx, seq, w); err == nil && out.ToFile() {
		err = a.RemoteFailure() // a reader may have taken it for damage
	}
	if err != nil && !errors.As(err, &missing) {
		return nil, errors.Join(err, w.Abort(ctx))
	}
	s, cerr := w.Close(ctx)
	if cerr != nil {
		return nil, errors.Join(fault.OfRows(cerr), w.Abort(ctx))
	}
	return s.Altered, err
}

func CopyRows(ctx context.Context, seq cli.Batches, w output.RowWriter) error {
	for b, err := range seq {
		if err == nil {
			err = fault.OfRows(w.Write(ctx, b))
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
