package mixed

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/internal/sorted"
)

// noStatus is the status of what no tablestatus names.
const noStatus = "no tablestatus"

// folderSegments lists what was written to a directory of data files, or to one data file, in the order of time. Files
// of the SDK have no segment: one writer's files have the same time in their names, which stands for it.
func folderSegments(ctx context.Context, tg format.Target, op format.OpenOptions, k table.Kind) ([]format.Segment,
	error) {
	d := &table.Folder{Data: []string{tg.Name}}
	if k == table.KindFiles {
		var err error
		if d, err = table.ReadFolder(ctx, tg, op.Limits); err != nil {
			return nil, err
		}
	}
	f := &folder{times: map[int64]int{}}
	for _, name := range d.Data {
		if err := f.data(ctx, tg, op, name); err != nil {
			return nil, err
		}
	}
	for _, name := range d.Indexes {
		info, err := tg.Tree.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		s := f.writerOf(name)
		s.Index += info.Size
		s.Err = errors.Join(s.Err, d.Unreadable[name])
	}
	for _, name := range d.Missing() {
		s := f.writerOf(name)
		s.Rows, s.Err = -1, errors.Join(s.Err, d.MissingError(tg.Name, name))
	}
	sorted.StablyBy(f.list, func(a, b format.Segment) int { return a.Began.Compare(b.Began) })
	return f.list, nil
}

// folder collects the segments of a directory.
type folder struct {
	list  []format.Segment
	times map[int64]int // the segment of each time in names of data files; names of indexes have no other part of it
}

// data adds a data file.
func (f *folder) data(ctx context.Context, tg format.Target, op format.OpenOptions, name string) error {
	info, err := tg.Tree.Stat(ctx, name)
	if err != nil {
		return err
	}
	s := f.writerOf(name)
	s.Files, s.Data = s.Files+1, s.Data+info.Size
	file, err := datafile.OpenFile(ctx, tg.Tree, name, op)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		s.Rows, s.Err = -1, errors.Join(s.Err, err)
	case s.Rows >= 0:
		s.Rows += file.Footer.Rows
	}
	return nil
}

// writerOf returns the segment of a file. A merged index says nothing about its segment, and belongs to the first one.
func (f *folder) writerOf(name string) *format.Segment {
	n := status.ParseFileName(name)
	i, known := f.times[n.Time]
	if merged := strings.HasSuffix(name, layout.MergedExt); merged && n.Time < 0 && len(f.list) > 0 {
		return &f.list[0]
	}
	id := path.Base(name)
	if n.Time >= 0 {
		id = strconv.FormatInt(n.Time, 10)
	}
	if n.Segment != "" && n.Segment != "null" {
		id, known = n.Segment, false
	}
	if !known {
		i = slices.IndexFunc(f.list, func(s format.Segment) bool { return s.Name == id })
	}
	if i < 0 {
		i = len(f.list)
		f.list = append(f.list, format.Segment{Name: id, Status: noStatus, Read: true})
	}
	s := &f.list[i]
	if n.Time < 0 {
		return s
	}
	f.times[n.Time] = i
	if at := time.UnixMilli(n.Time); s.Began.IsZero() || at.Before(s.Began) {
		s.Began = at
	}
	return s
}
