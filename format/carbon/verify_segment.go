package carbon

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
)

// sizes compares the sizes of a segment's files with those in tablestatus. Updates before 2.0 added files
// and left the size as it was; segments of rows grow.
func (v *verifier) sizes(t *table.Managed, l *status.Load, h *table.Contents) {
	if !l.Counts() || h.Unknown || l.Status == status.StatusStreaming || l.Status == status.StatusFinish {
		return
	}
	at := fault.Span{Object: t.Status}
	if want := status.Count64(l.DataSize); want >= 0 && want != h.Bytes && (want > h.Bytes || l.UpdateFrom == "") {
		v.Report("carbon.segment.size", at, "dataSize", "segment %s: %d bytes of data files, there are %d", l.Name,
			want, h.Bytes)
	}
	if want := status.Count64(l.IndexSize); want >= 0 && want != h.IndexBytes &&
		(want > h.IndexBytes || l.UpdateFrom == "") {
		v.Report("carbon.segment.size", at, "indexSize", "segment %s: %d bytes of index files, there are %d", l.Name,
			want, h.IndexBytes)
	}
}

// segmentBounds compares the smallest and largest values of each column in the segment file, by which Carbon skips
// segments, with those of its blocklets. alone: there is no index that says which files are the segment's.
func (v *verifier) segmentBounds(t *table.Managed, l *status.Load, parts []table.Part, alone bool) {
	known, at, err := t.KeptBounds(v.ctx, l)
	if err != nil {
		v.Blame("carbon.segment.minmax", err, -1, -1)
		return
	}
	for _, id := range layout.Sorted(known) {
		if t.Ids != nil && !t.Ids[id] {
			v.Report("carbon.segment.minmax", at, "segmentMetaDataInfo."+id,
				"segment %s: no column of the table has or had this id", l.Name)
		}
	}
	if alone {
		if err := t.CheckBounds(v.ctx, l, parts); err != nil {
			v.Blame("carbon.segment.minmax", err, -1, -1)
			return
		}
	}
	for i := range parts {
		f, err := t.File(v.ctx, parts[i].Name)
		if err != nil {
			continue // reported with the file
		}
		for _, r := range table.KeptColumnsOf(f, known) {
			if err := table.WithinSegment(l, at, f, r, known[r.Id], nil); err != nil {
				v.Column = r.Name
				v.Blame("carbon.segment.minmax", err, -1, -1)
			}
		}
	}
	v.Column = ""
}

// leftovers reports files in the table's directories that nothing refers to any more.
func (v *verifier) leftovers(t *table.Managed) {
	if t.Guessed == nil {
		v.v12Updates(t)
	}
	v.reportNames("delete deltas that nothing names any more", v.replaced)
	for _, name := range v.replaced {
		var d table.DeleteDelta
		err := status.ReadJSON(v.ctx, t.Tree, name, v.o.Limits.WithDefaults(), &d)
		if err == nil && d.Block != status.ParseFileName(name).Block {
			err = fault.Corruptf(fault.Span{Object: name}, "blockName", "%q", d.Block)
		}
		v.v12Damage(err)
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

// unnamedSegments reports segments with files that no status knows.
func (v *verifier) unnamedSegments(t *table.Managed) {
	gone, left, err := t.Unnamed(v.ctx)
	if err != nil {
		v.Blame("carbon.read", err, -1, -1)
	}
	if t.O.Segments != nil { // which are read options say
		gone = nil
	}
	for i := range gone {
		v.Blame("carbon.segment.vanished", t.Lack(v.ctx, &gone[i]), -1, -1)
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

// hasFiles reports whether there is anything in a directory.
func (v *verifier) hasFiles(dir string) bool {
	for _, err := range v.tree.List(v.ctx, dir) {
		return err == nil
	}
	return false
}

// reportNames reports all names of one kind as one finding.
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

// v12Damage reports that a file cannot be read that nobody reads.
func (v *verifier) v12Damage(err error) {
	if err != nil {
		v.Blame("carbon.leftover", err, -1, -1)
	}
}

const updatePrefix = "tableupdatestatus-"

// v12Updates looks at the update statuses that tablestatus does not name.
func (v *verifier) v12Updates(t *table.Managed) {
	var old []string
	current := int64(-1)
	if stamp, ok := strings.CutPrefix(path.Base(t.Updates), updatePrefix); ok {
		current = status.Count64(stamp)
	}
	for info, err := range t.Tree.List(v.ctx, path.Join(t.Path, "Metadata")) {
		if err != nil {
			return // shown by others
		}
		stamp, ok := strings.CutPrefix(path.Base(info.Name), updatePrefix)
		if !ok || info.Dir || info.Name == t.Updates || strings.HasSuffix(stamp, ".crc") {
			continue
		}
		if at := status.Count64(stamp); at > current {
			v.Report("carbon.update.newer", fault.Span{Object: info.Name}, "", "tablestatus names %s",
				orNone(path.Base(t.Updates)))
			continue
		}
		old = append(old, info.Name)
		var list []status.Update
		v.v12Damage(status.ReadJSON(v.ctx, t.Tree, info.Name, v.o.Limits.WithDefaults(), &list))
	}
	slices.Sort(old)
	v.reportNames("update statuses that later ones stand for", old)
}

func orNone(name string) string {
	if name == "." {
		return "none"
	}
	return name
}
