package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
)

// columnar opens a data file from which rows can be deleted. Those of streaming segments are Unsupported.
func columnar(ctx context.Context, t *table.Managed, name, segment string) (*datafile.DataFile, error) {
	f, err := t.File(ctx, name)
	if err == nil && f.Stream != nil {
		err = fault.Unsupportedf(f.At, "", "rows of streaming segment %s are to be deleted, which CarbonData would "+
			"show nevertheless: rewrite the segment first (stoa compact --close-streaming)", segment)
	}
	return f, err
}

// checkDelete is format.Changer.CheckDelete.
func checkDelete(ctx context.Context, p format.TablePlace, rows []format.RowsOfFile) error {
	if err := checkIndependent(ctx, p); err != nil {
		return err
	}
	m, err := openManaged(ctx, p)
	for i := 0; i < len(rows) && err == nil; i++ {
		var part *table.Part
		if part, err = m.Part(ctx, rows[i].File); err == nil {
			_, err = columnar(ctx, m, rows[i].File, part.Segment)
		}
	}
	return err
}

// writeDelta writes the delete delta of a data file: the rows that were already deleted, and those of d. It returns the
// delta's entry for the update status, and its path.
func writeDelta(t *table.Managed, ctx context.Context, d format.RowsOfFile, stamp int64) (entry map[string]any,
	file string, err error) {
	p, err := t.Part(ctx, d.File)
	if err != nil {
		return nil, "", err
	}
	f, err := columnar(ctx, t, d.File, p.Segment)
	if err != nil {
		return nil, "", err
	}
	gone := table.Deletes{}
	if p.Update != nil {
		if gone, err = t.ReadDeletes(ctx, p.Update, filepath.ToSlash(filepath.Dir(p.Name))); err != nil {
			return nil, "", err
		}
		if gone == nil {
			gone = table.Deletes{}
		}
	}
	before := gone.Count()
	if err := locateRows(t, ctx, f, d.Rows, gone); err != nil {
		return nil, "", err
	}
	name := status.ParseFileName(d.File)
	details := map[string]any{}
	total := 0
	for k, rows := range gone {
		slices.Sort(rows)
		rows = slices.Compact(rows)
		gone[k] = rows
		total += len(rows)
		details[fmt.Sprintf("%d_%d", k.Blocklet, k.Page)] = map[string]any{"id": strconv.FormatInt(k.Blocklet, 10),
			"pageId": k.Page, "deletedRows": rows}
	}
	if total != before+len(d.Rows) {
		return nil, "", fault.Invalidf("%s: expected %s to delete, found %d that are not deleted yet", d.File,
			fault.Count(len(d.Rows), "row"), total-before)
	}
	b, err := json.Marshal(map[string]any{"blockletDetailsMap": details, "blockName": name.Block})
	if err != nil {
		return nil, "", err
	}
	u := map[string]any{"segmentName": p.Segment, "blockName": name.Block,
		"deleteDeltaStartTimestamp": status.FormatMillis(stamp), "deleteDeltaEndTimestamp": status.FormatMillis(stamp),
		"actualBlockName": filepath.Base(d.File), "deletedRowsInBlock": strconv.Itoa(total)}
	all := int64(0)
	for i := range f.Footer.Blocklet {
		all += f.Footer.Blocklet[i].Rows
	}
	if int64(total) == all {
		u["segmentStatus"] = status.StatusDeleted
	}
	delta := filepath.Join(filepath.Dir(d.File), fmt.Sprintf("%s-%d.deletedelta", name.Block, stamp))
	if err := status.ReplaceFile(delta, b); err != nil {
		return nil, "", err
	}
	written := &status.Update{Segment: p.Segment, Block: name.Block, From: status.FormatMillis(stamp),
		To: status.FormatMillis(stamp), Actual: filepath.Base(d.File), Deleted: strconv.Itoa(total)}
	return u, delta, verifyDelta(t, ctx, written, delta, gone)
}

// verifyDelta reads a delete delta back before anything refers to it: a single wrong row in it would delete one row and
// restore another. If it differs from what was written, it is removed and the error is Corrupt.
func verifyDelta(t *table.Managed, ctx context.Context, u *status.Update, delta string, gone table.Deletes) error {
	got, err := t.ReadDeletes(ctx, u, filepath.ToSlash(filepath.Dir(delta)))
	if err == nil && !maps.EqualFunc(got, gone, slices.Equal) {
		err = fault.Corruptf(fault.Span{Object: delta}, "",
			"expected the %d deleted rows that were written, found %d others: the storage does not keep its writes",
			gone.Count(), got.Count())
	}
	if err != nil {
		return errors.Join(err, os.Remove(delta))
	}
	return nil
}

// locateRows adds rows, which are ascending ordinals in file f, to gone by blocklet and page.
func locateRows(t *table.Managed, ctx context.Context, f *datafile.DataFile, rows []int64, gone table.Deletes) error {
	base, k := int64(0), 0
	for g := range f.Footer.Blocklet {
		starts, err := f.PageStarts(ctx, g)
		if err != nil {
			return err
		}
		for p0 := range len(starts) - 1 {
			for ; k < len(rows) && rows[k] < base+starts[p0+1]; k++ {
				key := table.PageKey{Blocklet: int64(g), Page: int64(p0)}
				gone[key] = append(gone[key], rows[k]-base-starts[p0])
			}
		}
		base += f.Footer.Blocklet[g].Rows
	}
	if k < len(rows) {
		return fault.Invalidf("%s has no row %d", f.At.Object, rows[k])
	}
	return nil
}
