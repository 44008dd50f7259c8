package carbon

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
)

// entry reports fields of a tablestatus entry that are not valid times or sizes. Fields are empty in unfinished
// entries, and in tables from before release 1.3.
func (v *verifier) entry(t *table.Managed, i int) {
	l := &t.Loads[i]
	for _, x := range []struct {
		name, text, what string
		is               func(string) bool
	}{
		{"timestamp", l.Timestamp, "a time", isTime},
		{"loadStartTime", l.Start, "a time", isTime},
		{"updateDeltaStartTimestamp", l.UpdateFrom, "a time", isTime},
		{"updateDeltaEndTimestamp", l.UpdateTo, "a time", isTime},
		{"modificationOrDeletionTimestamp", l.Changed, "a time", isTime},
		{"modificationOrdeletionTimesStamp", l.Changed1, "a time", isTime},
		{"dataSize", l.DataSize, "a number of bytes", isSize},
		{"indexSize", l.IndexSize, "a number of bytes", isSize},
	} {
		if x.text != "" && !x.is(x.text) {
			v.Report("carbon.segment.entry", fault.Span{Object: t.Status}, fmt.Sprintf("[%d].%s", i, x.name),
				"segment %s: %q is not %s", l.Name, x.text, x.what)
		}
	}
}

func isTime(s string) bool {
	_, ok := status.Millis(s)
	return ok
}

func isSize(s string) bool { return status.ParseCount(s) >= 0 }

// sizes compares the sizes of a segment's files with those in tablestatus. They may be larger after updates by releases
// before 2.0, which added files without changing the size; streaming segments grow; the first segments of secondary
// index tables have the sizes of those of the main table.
func (v *verifier) sizes(t *table.Managed, l *status.Load, h *table.Contents) {
	if !l.Counts() || h.Unknown || l.Status == status.StatusStreaming || l.Status == status.StatusFinish ||
		t.TableSchema.IsIndexTable() {
		return
	}
	at := fault.Span{Object: t.Status}
	if t.Drops(v.ctx, l) { // CarbonData removes the files of dropped partitions but does not change the sizes
		return
	}
	if want := status.ParseCount(l.DataSize); want >= 0 && want != h.Bytes && (want > h.Bytes || l.UpdateFrom == "") {
		v.Report("carbon.segment.size", at, "dataSize", "segment %s: expected %d bytes of data files, found %d", l.Name,
			want, h.Bytes)
	}
	if want := status.ParseCount(l.IndexSize); want >= 0 && want != h.IndexBytes &&
		(want > h.IndexBytes || l.UpdateFrom == "") {
		v.Report("carbon.segment.size", at, "indexSize", "segment %s: expected %d bytes of index files, found %d",
			l.Name,
			want, h.IndexBytes)
	}
}

// segmentBounds compares min and max of each column in the segment file, by which CarbonData skips segments, with those
// of the segment's blocklets. alone states that no index names the segment's files.
func (v *verifier) segmentBounds(t *table.Managed, l *status.Load, parts []table.Part, alone bool) {
	known, at, err := t.KeptBounds(v.ctx, l)
	if err != nil {
		v.Blame("carbon.segment.minmax", err, -1, -1)
		return
	}
	for _, id := range layout.SortedKeys(known) {
		if t.Ids != nil && !t.Ids[id] {
			v.Report("carbon.segment.minmax", at, "segmentMetaDataInfo."+id,
				"segment %s: the table never had a column of this id", l.Name)
		}
	}
	if alone {
		if err := t.CheckBounds(v.ctx, l, parts); err != nil {
			v.Blame("carbon.segment.minmax", err, -1, -1)
			return
		}
	}
	// CarbonData merges the bounds of several files wrongly. Some may be gone since: a file without rows left is no
	// part after a delete, and clean removes it.
	several := len(parts) > 1 || l.UpdateTo != "" || t.Deleted(l)
	for i := range parts {
		f, err := t.File(v.ctx, parts[i].Name)
		if err != nil {
			continue // already reported with the file
		}
		for _, r := range table.KeptColumnsOf(f, known) {
			if err := table.WithinSegment(l, at, f, r, known[r.ID], nil); err != nil {
				v.Column = r.Name
				if e := (*fault.Error)(nil); several && errors.As(err, &e) {
					v.Report("carbon.segment.bounds", at, e.Path, "%s", e.Reason)
					continue
				}
				v.Blame("carbon.segment.minmax", err, -1, -1)
			}
		}
	}
	v.Column = ""
}

// leftovers reports files in the table's directories that nothing refers to any more.
func (v *verifier) leftovers(t *table.Managed) {
	if t.Guessed == nil {
		v.earlierUpdates(t)
	}
	v.reportNames("delete deltas that nothing names any more", v.replaced)
	for _, name := range v.replaced {
		var d table.DeleteDelta
		err := status.ReadJSON(v.ctx, t.Tree, name, v.o.Limits.WithDefaults(), &d)
		if err == nil && d.Block != status.ParseFileName(name).Block {
			err = fault.Corruptf(fault.Span{Object: name}, "blockName", "expected %q by its name, found %q",
				status.ParseFileName(name).Block, d.Block)
		}
		v.leftoverDamage(err)
	}
	var segments []string
	for i := range t.Loads {
		l := &t.Loads[i]
		if l.Counts() || l.Path != "" || l.Foreign() {
			continue
		}
		places, err := t.Folders(v.ctx, l)
		t.Notes = nil
		for _, p := range places {
			if err == nil && path.Base(p.Dir) == "Segment_"+l.Name && v.hasFiles(p.Dir) {
				segments = append(segments, fmt.Sprintf("%s (%s)", p.Dir, l.Status))
			}
		}
	}
	v.reportNames("segments that do not count, and are not verified", segments)
	v.unnamedSegments(t)
}

// unnamedSegments reports segments with files that have no entry in tablestatus or its history.
func (v *verifier) unnamedSegments(t *table.Managed) {
	gone, left, err := t.Unnamed(v.ctx)
	if err != nil {
		v.Blame("carbon.read", err, -1, -1)
	}
	if t.O.Segments != nil { // the options decide which segments are read
		gone = nil
	}
	for i := range gone {
		v.Blame("carbon.segment.vanished", t.VanishedError(v.ctx, &gone[i]), -1, -1)
	}
	for i := range left {
		l := &left[i]
		places, err := t.Folders(v.ctx, l)
		if err != nil || len(places) == 0 {
			continue
		}
		at := places[0].Dir
		if l.Segment != "" {
			at = path.Join(t.Path, "Metadata", "segments", l.Segment)
		}
		v.Report("carbon.segment.unnamed", fault.Span{Object: at}, "",
			"tablestatus does not name segment %s, whose files are in %s: its rows are not read", l.Name, places[0].Dir)
	}
}

// hasFiles reports whether a directory is not empty.
func (v *verifier) hasFiles(dir string) bool {
	for _, err := range v.tree.List(v.ctx, dir) {
		return err == nil
	}
	return false
}

// reportNames reports leftover files of one kind as one finding, with three of their names.
func (v *verifier) reportNames(what string, names []string) {
	if len(names) == 0 {
		return
	}
	at, _, _ := strings.Cut(names[0], " (")
	var some []string
	for _, n := range names[:min(len(names), 3)] {
		some = append(some, path.Base(n))
	}
	if n := len(names) - len(some); n > 0 {
		some = append(some, fmt.Sprintf("%d more", n))
	}
	v.Report("carbon.leftover", fault.Span{Object: at}, "", "%s: %s", what, strings.Join(some, ", "))
}

// leftoverDamage reports err, if it is not nil, as damage of a file that no reader reads.
func (v *verifier) leftoverDamage(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // else it was removed meanwhile
		v.Blame("carbon.leftover", err, -1, -1)
	}
}

const updatePrefix = "tableupdatestatus-"

// earlierUpdates verifies the update statuses that tablestatus does not name.
func (v *verifier) earlierUpdates(t *table.Managed) {
	var earlier []string
	current := int64(-1)
	if stamp, ok := strings.CutPrefix(path.Base(t.Updates), updatePrefix); ok {
		current = status.ParseCount(stamp)
	}
	if t.UpdatesNull {
		v.Report("carbon.update.null", fault.Span{Object: t.Updates}, "", "the update status is null: CarbonData "+
			"cannot read the table until the next change, such as stoa clean")
	}
	for info, err := range t.Tree.List(v.ctx, path.Join(t.Path, "Metadata")) {
		if err != nil {
			return // reported already
		}
		stamp, ok := strings.CutPrefix(path.Base(info.Name), updatePrefix)
		if !ok || info.Dir || info.Name == t.Updates || strings.HasSuffix(stamp, ".crc") {
			continue
		}
		var list []status.Update
		err := status.ReadJSON(v.ctx, t.Tree, info.Name, v.o.Limits.WithDefaults(), &list)
		if at := status.ParseCount(stamp); at > current && (err != nil || list != nil) {
			v.Report("carbon.update.newer", fault.Span{Object: info.Name}, "", "tablestatus names %s",
				orNone(path.Base(t.Updates)))
			continue
		}
		earlier = append(earlier, info.Name)
		v.leftoverDamage(err)
	}
	slices.Sort(earlier)
	v.reportNames("update statuses that later ones replace", earlier)
}

// orNone returns the base name of name, "none" for "".
func orNone(name string) string {
	if name == "." {
		return "none"
	}
	return name
}

// calendar reports how many values of a file depend on the calendar, and in which calendar they are read.
func (v *verifier) calendar(own *table.Table, f *datafile.DataFile, t *table.Managed) {
	if v.old > 0 && !table.SaysCalendar(f) {
		how := "as they are stored, by the Gregorian calendar"
		if own.Calendar = v.opts.Calendar; t != nil {
			own.Ids = t.Ids
		}
		if own.Hybrid(f) {
			how = "by Java's calendar, which is Julian there"
		}
		v.Column = ""
		v.Report("carbon.calendar", f.At, "", "%d dates and times before 15 October 1582 are read %s; option calendar "+
			"decides otherwise", v.old, how)
	}
	v.old = 0
}

// compare compares the entries of a data file in an index file with its footer.
func (v *verifier) compare(f *datafile.DataFile, known *datafile.Indexed) {
	if known == nil {
		return
	}
	bad := func(b *layout.BlockIndex, format string, args ...any) {
		v.Report("carbon.index.disagree", b.At, path.Base(f.At.Object), format, args...)
	}
	var rows int64
	for i := range known.Blocks {
		b := &known.Blocks[i]
		rows += b.Count()
		if b.Offset != f.FootAt && f.Stream == nil {
			bad(b, "expected the footer at %d, found offset %d", f.FootAt, b.Offset)
		}
		if b.Info == nil || i >= len(f.Footer.Blocklet) {
			continue
		}
		if b.Count() != f.Footer.Blocklet[i].Rows {
			bad(b, "blocklet %d: expected %s by the footer, found %d", i,
				fault.Count(f.Footer.Blocklet[i].Rows, "row"), b.Count())
		}
		if b.Rows != f.Footer.Rows && b.Rows != b.Count() {
			bad(b, "num_rows: expected %d by the footer, found %d", f.Footer.Rows, b.Rows)
		}
		if !layout.SameBounds(b.Index.MinMax, f.Footer.Index[i].MinMax) {
			bad(b, "blocklet %d: min and max differ from those in the footer", i)
		}
	}
	if rows != f.Footer.Rows && len(known.Blocks) > 0 {
		bad(&known.Blocks[0], "expected %s by the footer, found %d in all entries", fault.Count(f.Footer.Rows, "row"),
			rows)
	}
}
