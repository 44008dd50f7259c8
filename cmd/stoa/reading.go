package main

import (
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/fault"
)

// batches is what a scan gives.
type batches = iter.Seq2[arrow.RecordBatch, error]

// reading is what the verbs that print rows have in common.
type reading struct {
	sourceFlags
	selectFlags
	damageFlags
	outputFlags
}

func (r *reading) register(a *app, cmd *cobra.Command) {
	r.selectFlags.register(a, cmd, &r.sourceFlags)
	r.registerMemory(cmd)
	r.outputFlags.register(cmd, rowForms, "default: what the extension of -o says, else table (vertical if it "+
		"is too wide) on a terminal and jsonl elsewhere")
	r.damageFlags.register(cmd, "fail")
	r.sourceFlags.register(a, cmd)
}

// spec is the scan that the flags ask for.
func (r *reading) spec() (stoa.ScanSpec, error) {
	s, err := r.selectFlags.spec()
	if err != nil {
		return s, err
	}
	err = r.damageFlags.apply(&s)
	return s, err
}

// wholeScan is the scan as it stands.
func wholeScan(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) (batches, error) {
	return t.Scan(ctx, spec), nil
}

// run opens the paths as one table, and writes what rows makes of it and the flags.
func (r *reading) run(ctx context.Context, a *app, paths []string,
	rows func(context.Context, *stoa.Table, stoa.ScanSpec) (batches, error)) error {
	form, err := r.rowForm(a)
	if err != nil {
		return err
	}
	spec, err := r.spec()
	if err != nil {
		return err
	}
	t, err := r.openDamaged(ctx, a, paths)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := a.spareAll(t.Sources(), r.file, r.manifest); err != nil {
		return err
	}
	err = r.write(ctx, a, form, t, spec, rows)
	return r.damageFlags.report(ctx, a, paths, t.Findings(), err)
}

// openDamaged opens the paths as one table. Where the damage policy lets rows be lost, what cannot be opened is
// opened as recover does.
func (r *reading) openDamaged(ctx context.Context, a *app, paths []string) (*stoa.Table, error) {
	o, err := r.options(ctx, a, paths)
	if err != nil {
		return nil, err
	}
	t, err := a.openAll(ctx, paths, o)
	if r.damaged == "fail" || !errors.Is(err, fault.Corrupt) {
		return t, err
	}
	o.Recover = true
	if t, again := a.openAll(ctx, paths, o); again == nil {
		return t, nil
	}
	return nil, err
}

func (r *reading) write(ctx context.Context, a *app, form string, t *stoa.Table, spec stoa.ScanSpec,
	rows func(context.Context, *stoa.Table, stoa.ScanSpec) (batches, error)) error {
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return err
	}
	r.wide = sc.NumFields() > 1
	seq, err := rows(ctx, t, spec)
	if err != nil {
		return err
	}
	return a.writeRows(ctx, &r.outputFlags, form, sc, seq)
}

// writeRows writes rows of schema sc.
func (a *app) writeRows(ctx context.Context, out *outputFlags, form string, sc *arrow.Schema, seq batches) error {
	w, err := a.rowWriter(ctx, out, form, sc)
	if err != nil {
		return err
	}
	var missing *missingError
	err = copyRows(ctx, seq, w)
	if err != nil && !errors.As(err, &missing) {
		return errors.Join(err, w.Abort(ctx))
	}
	s, cerr := w.Close(ctx)
	if cerr != nil {
		return errors.Join(cerr, w.Abort(ctx))
	}
	for _, x := range s.Altered { // the table is whole all the same, and was shown
		a.alarm("stoa: %s", x.Message)
	}
	return err
}

func copyRows(ctx context.Context, seq batches, w rowWriter) error {
	for b, err := range seq {
		if err == nil {
			err = w.Write(ctx, b)
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
