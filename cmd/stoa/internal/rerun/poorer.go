// Package rerun compares what a resumed run reads of a table with what an earlier run has read of it.
package rerun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"stoa"
	"stoa/cmd/stoa/internal/display"
	"stoa/format"
	"stoa/region"
)

// Reached returns how far a table was read, as far as that is known.
func Reached(ctx context.Context, t *stoa.Table) (map[string]format.Reach, error) {
	if reached := t.Sources()[0].Reached; reached != nil {
		return reached(ctx)
	}
	return nil, nil
}

// PoorError says why what was read does not replace an object of an earlier run, which has no other name meanwhile.
type PoorError struct{ Why string }

func (e *PoorError) Error() string { return e.Why }

// Read is what was read of a table.
type Read struct {
	Rows     int64
	Reached  map[string]format.Reach // how far, by part
	Findings []region.Finding
	Losses   []region.Loss
	Nulls    bool // rows of which only cells are lost are there
}

// Unknown reports whether nothing says how far the table was read then, by a run of an earlier release, though that is
// known now: then nobody knows which of the two is newer.
func (now *Read) Unknown(then *Read) bool { return then.Reached == nil && now.Reached != nil }

// Poorer says what the sources give now, if the table is poorer than it was then; "" if it is not. It is if a part of
// it is not read up to the last change that was read then, or is hurt, whatever the number of rows. Fewer rows are less
// only if fewer says so, and no part was read further than then, or one that was not has fewer: rows that were deleted
// are not lost.
func (now *Read) Poorer(then *Read, fewer bool) string {
	rows := display.Count(now.Rows, "row")
	if now.Rows < then.Rows {
		rows = "less, " + rows
	}
	if why := now.Older(then); why != "" {
		return "less, " + why
	}
	if part := now.Hurt(then); part != "" {
		return fmt.Sprintf("%s, and have damage that was not there (%s)", rows, part)
	}
	switch {
	case !fewer:
	case now.Rows < then.Rows && !now.Newer(then):
		return rows
	case now.Rows < then.Rows:
		for _, part := range slices.Sorted(maps.Keys(then.Reached)) {
			if now.Reached[part].Changed <= then.Reached[part].Changed && now.has(part) < then.has(part) {
				return fmt.Sprintf("%s, without any that were in %s, which is no newer", rows, part)
			}
		}
	}
	return ""
}

// Newer reports whether a part of the table was read beyond the last change that was read then, and none less far.
func (now *Read) Newer(then *Read) bool {
	later := false
	for part, was := range then.Reached {
		is, ok := now.Reached[part]
		if !ok || is.Known < was.Changed {
			return false
		}
		later = later || is.Changed > was.Changed
	}
	return later
}

// Hurt returns a part of which something is lost now, or may be, that was not then; "" if there is none. A part of
// which more, or something else, is lost than then is hurt, too; so is one with damage that has fewer rows.
func (now *Read) Hurt(then *Read) string {
	was, is := then.harms(), now.harms()
	for _, part := range slices.Sorted(maps.Keys(is)) {
		complete := false
		for _, h := range is[part] {
			all := now.complete(&h)
			if complete = complete || all; len(was[part]) == 0 || !all && !now.told(&h, was[part]) {
				return cmp.Or(part, "all of it")
			}
		}
		if !complete && now.has(part) < then.has(part) {
			return part
		}
	}
	return ""
}

// has returns how many rows of a part are there, with deleted ones; 0 if that is not known.
func (r *Read) has(part string) int64 {
	lost, _ := region.LostRows(slices.DeleteFunc(slices.Clone(r.Losses), func(l region.Loss) bool {
		return l.Part != part || r.Nulls && l.Column != ""
	}))
	return max(0, r.Reached[part].Rows-lost)
}

// Older says which part of a table is read now as it was before the last change that was read then; "" if none is.
func (now *Read) Older(then *Read) string {
	for _, part := range slices.Sorted(maps.Keys(then.Reached)) {
		was, is := then.Reached[part], now.Reached[part]
		switch {
		case is.Known >= was.Changed:
		case is.Time == "":
			return "none of " + part
		default:
			return part + " as of " + is.Time + ", not " + was.Time
		}
	}
	return ""
}

// NoLog reports whether a finding says that a tablet has no log, or none that belongs to its superblock: what was not
// flushed may be lost, whether one log is missing or all are. Other verbs only warn of the latter, because disks are
// copied without logs on purpose.
func NoLog(f region.Finding) bool { return f.Code == "kudu.wal.missing" || f.Code == "kudu.wal.gap" }

// Undecided reports whether a finding is about operations at the end of a log that nothing says were committed. They
// are not applied, though a server might.
func Undecided(f region.Finding) bool {
	return f.Severity > region.Note &&
		(f.Code == "kudu.wal.torn" || f.Code == "kudu.wal.uncommitted" || f.Code == "kudu.wal.txn.open")
}

// costless are the codes of such findings: consensus metadata, and the file that numbers the data directories of a
// server. Blocks that are not found without that file have findings of their own.
var costless = []string{"kudu.cmeta.damaged", "kudu.datadir.damaged"}

// Costless lowers findings about what no row depends on, and without which only a server does not start, to warnings.
func Costless(all []region.Finding) []region.Finding {
	out := slices.Clone(all)
	for i := range out {
		if f := &out[i]; slices.Contains(costless, f.Code) && f.Severity >= region.Error {
			f.Severity = region.Warning
		}
	}
	return out
}
