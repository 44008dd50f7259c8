package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
)

// DeleteDelta is a .deletedelta: the rows of a data file that are deleted, by blocklet and page.
type DeleteDelta struct {
	Details map[string]struct {
		ID   string  `json:"id"`
		Page *int64  `json:"pageId"`
		Rows []int64 `json:"deletedRows"`
	} `json:"blockletDetailsMap"`
	Block string `json:"blockName"`
}

// PageKey is a page of a data file.
type PageKey struct{ Blocklet, Page int64 }

// Deletes are the deleted rows of a data file by page, ascending.
type Deletes map[PageKey][]int64

// DeltaNames returns the paths of a block's delete deltas in directory dir, as implied by the block's entry in the
// update status.
func (t *Managed) DeltaNames(ctx context.Context, u *status.Update, dir string) ([]string, error) {
	name := func(stamp string) string { return path.Join(dir, u.Block+"-"+stamp+layout.DeltaExt) }
	switch {
	case u.Guessed:
		out := make([]string, len(u.Stamps))
		for i, s := range u.Stamps {
			out[i] = name(s)
		}
		return out, nil
	case status.ParseCount(u.Deleted) == 0: // the rows of the block were moved, not deleted
		return nil, nil
	case u.From == u.To:
		return []string{name(u.From)}, nil
	case len(u.Stamps) > 0:
		out := make([]string, len(u.Stamps))
		for i, s := range u.Stamps {
			out[i] = name(s)
		}
		return out, nil
	}
	from, ok1 := status.Millis(u.From)
	to, ok2 := status.Millis(u.To)
	if !ok1 || !ok2 {
		return nil, fault.Corruptf(fault.Span{Object: t.Updates}, "deleteDeltaStartTimestamp",
			"block %s: expected two times, found %q and %q", u.Block, u.From, u.To)
	}
	var out []string
	for info, err := range t.Tree.List(ctx, dir) {
		if err != nil {
			return nil, err
		}
		base, ok := strings.CutSuffix(path.Base(info.Name), layout.DeltaExt)
		if i := strings.LastIndexByte(base, '-'); ok && i >= 0 && base[:i] == u.Block {
			if ms, ok := status.Millis(base[i+1:]); ok && ms >= from && ms <= to {
				out = append(out, info.Name)
			}
		}
	}
	return out, nil
}

// ReadDeletes reads the delete deltas of a data file in dir. A delta that is missing or contradicts the update status
// is an error, because its deleted rows would reappear. In recovery all other deltas of the block that are not newer
// are read instead: a deleted row stays deleted, and a delta that replaces others has all their rows. The number of
// rows that reappear nevertheless is reported.
func (t *Managed) ReadDeletes(ctx context.Context, u *status.Update, dir string) (Deletes, error) {
	list, err := t.DeltaNames(ctx, u, dir)
	if err != nil || len(list) == 0 && (status.ParseCount(u.Deleted) == 0 || u.Guessed) {
		return nil, t.tolerate(path.Join(dir, u.Block), err)
	}
	out, unreadable := Deletes{}, map[string]error{}
	for _, name := range list {
		err := t.readDelta(ctx, u, name, out)
		if err != nil && (t.saved == nil || !errors.Is(err, fault.Corrupt)) {
			return nil, err
		}
		if err != nil {
			unreadable[name] = err
		}
	}
	if len(unreadable) > 0 {
		if err := t.olderDeltas(ctx, u, dir, list, out); err != nil {
			return nil, err
		}
	}
	var named, distinct int64
	for k := range out {
		named += int64(len(out[k]))
		slices.Sort(out[k])
		out[k] = slices.Compact(out[k])
		distinct += int64(len(out[k]))
	}
	n := status.ParseCount(u.Deleted)
	for _, name := range layout.SortedKeys(unreadable) {
		back := "an unknown number of the rows that it deletes come back"
		if n >= distinct && !u.Guessed {
			back = fmt.Sprintf("%d of the %d deleted rows of the block come back", n-distinct, n)
		}
		t.reportOnce(name, layout.Findingf("carbon.delete.damaged", placeOf(unreadable[name], name), t.Path,
			"%v: the block's other delete deltas are applied, and %s", unreadable[name], back))
	}
	// two deltas may have the same row, but each has it only once
	if !u.Guessed && len(unreadable) == 0 && n != distinct && (n != named || len(list) == 1) {
		err := fault.Corruptf(fault.Span{Object: t.Updates}, "deletedRowsInBlock",
			"block %s: expected the %s of its delete deltas, found %s", u.Block, fault.Count(distinct, "row"),
			u.Deleted)
		return out, t.tolerate(path.Join(dir, u.Block), err)
	}
	return out, nil
}

// olderDeltas adds the rows of those of the block's delete deltas in dir that are not in read and not newer than the
// current ones. Damaged deltas are skipped, because nothing refers to them any more.
func (t *Managed) olderDeltas(ctx context.Context, u *status.Update, dir string, read []string, out Deletes) error {
	until := int64(-1)
	for _, s := range append([]string{u.To}, u.Stamps...) {
		if ms, ok := status.Millis(s); ok {
			until = max(until, ms)
		}
	}
	for info, err := range t.Tree.List(ctx, dir) {
		if err != nil {
			return err
		}
		stamp, ok := strings.CutPrefix(strings.TrimSuffix(path.Base(info.Name), layout.DeltaExt), u.Block+"-")
		ms, isTime := status.Millis(stamp)
		if !ok || !isTime || ms > until || info.Dir || slices.Contains(read, info.Name) {
			continue
		}
		if err := t.readDelta(ctx, u, info.Name, out); err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
	}
	return nil
}

// readDelta adds the rows of a delete delta to out, unless it is damaged or belongs to another block.
func (t *Managed) readDelta(ctx context.Context, u *status.Update, name string, out Deletes) error {
	var d DeleteDelta
	if err := status.ReadJSON(ctx, t.Tree, name, t.Opts.Limits, &d); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // without it deleted rows would reappear
			return fault.Corruptf(fault.Span{Object: name}, "", "%s names this delete delta, and it is missing",
				path.Base(t.Updates))
		}
		return err
	}
	if d.Block != u.Block {
		return fault.Corruptf(fault.Span{Object: name}, "blockName", "expected %q by the update status, found %q",
			u.Block, d.Block)
	}
	if len(d.Details) == 0 {
		return fault.Corruptf(fault.Span{Object: name}, "blockletDetailsMap", "missing or empty")
	}
	mine := Deletes{}
	for _, k := range layout.SortedKeys(d.Details) {
		x := d.Details[k]
		id, err := strconv.ParseInt(x.ID, 10, 64)
		if err != nil || id < 0 || x.Page == nil || *x.Page < 0 || len(x.Rows) == 0 {
			return fault.Corruptf(fault.Span{Object: name}, "blockletDetailsMap."+k,
				"id, pageId or deletedRows is missing or invalid")
		}
		key := PageKey{id, *x.Page}
		mine[key] = append(mine[key], x.Rows...)
	}
	for k, rows := range mine {
		out[k] = append(out[k], rows...)
	}
	return nil
}

// Count returns the number of deleted rows.
func (d Deletes) Count() (n int) {
	for _, rows := range d {
		n += len(rows)
	}
	return n
}
