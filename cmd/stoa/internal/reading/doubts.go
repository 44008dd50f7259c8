package reading

import (
	"context"
	"errors"
	"slices"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
	"stoa/region"
)

// Doubts returns the errors, and the damage that costs no rows, that verify finds in places, and that reading has
// reported neither in noticed nor as the cause of a loss: a changed value may show only in bounds that no reader needs.
// The rows that they are about were read, so they count as no loss.
func (f *DamageFlags) Doubts(ctx context.Context, places []string, o stoa.OpenOptions,
	noticed []region.Finding) (found []region.Finding, err error) {
	o.Recover, o.Depth = false, format.Sums
	for _, p := range places {
		for x, err := range stoa.Verify(ctx, p, o) {
			if err != nil {
				return found, err
			}
			harmless := x.Severity == region.Warning && x.Lost == 0 && x.At.Len > 0 // damaged bytes without rows
			if (x.Severity == region.Error || harmless) && !f.told(x, noticed) {
				x.Lost = 0
				found = append(found, x)
			}
		}
	}
	return found, nil
}

// told reports whether reading has reported the damage that a finding is about.
func (f *DamageFlags) told(x region.Finding, noticed []region.Finding) bool {
	return slices.ContainsFunc(noticed, func(n region.Finding) bool {
		return n.Severity == region.Error && n.At == x.At && (n.Code == x.Code || n.Message == x.Message)
	}) || slices.ContainsFunc(f.Losses, func(l region.Loss) bool {
		var e *fault.Error
		return errors.As(l.Err, &e) && e.At.Object == x.At.Object && e.At.Off <= x.At.Off &&
			x.At.End() <= e.At.End() && (l.Column == "" || l.Column == x.Column || check.Reason(e) == x.Message)
	})
}
