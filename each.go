package stoa

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/internal/scan"
)

// Each reads the rows that spec selects, in any order: do is called on the goroutines of the spec.Parallel workers, by
// each with the batches that it read, so that nothing waits for another goroutine. worker, below spec.Parallel, is
// whose call it is; a worker calls do once at a time. A batch is valid during the call, unless it is retained. An
// error, also of do, ends the reading and is returned; do may then have been called with any of the batches. Of several
// places that cannot be read, the error is the one that Scan would return.
// spec.Lost is called by one goroutine at a time. With spec.Rows or spec.Limit there is one worker.
func (t *Table) Each(ctx context.Context, spec ScanSpec, do func(worker int, b arrow.RecordBatch) error) error {
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return err
	}
	as := func(worker int, b arrow.RecordBatch) (err error) {
		yieldAs(sc, b, func(b arrow.RecordBatch, _ error) bool {
			err = do(worker, b)
			return true
		})
		return err
	}
	if len(t.sources) > 1 && !spec.divides() { // positions and limits count through all sources
		for b, err := range t.Scan(ctx, spec) {
			if err == nil {
				err = do(0, b)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, s := range t.sources {
		if err := s.each(ctx, t.internal(spec), as); err != nil {
			return err
		}
	}
	return nil
}

// divides reports whether several workers can read a scan in any order.
func (s ScanSpec) divides() bool { return s.Limit == 0 && s.Rows.From == 0 && s.Rows.To == 0 }

// each is scan.Each of the source, as run is scan.Run of it.
func (s *source) each(ctx context.Context, spec scan.Spec, do func(int, arrow.RecordBatch) error) error {
	if s.closed.Load() {
		return fault.Invalidf("%s: the table is closed", s.name)
	}
	err := s.checkNames(spec)
	if err != nil {
		return err
	}
	if err = scan.Each(ctx, s.scan, spec, do); err == nil || errors.Is(err, fault.Corrupt) {
		if changed := s.checkUnchanged(ctx); changed != nil {
			return changed
		}
	}
	return err
}
