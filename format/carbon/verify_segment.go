package carbon

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/internal/codec"
	"stoa/pred"
	"stoa/wire"
)

// sizes holds the bytes that tablestatus says of a segment against its files. Updates before 2.0 added files and left the size as it was; segments of rows grow.
func (v *verifier) sizes(t *managed, l *load, h *holding) {
	if !l.counts() || h.unknown || l.Status == statusStreaming || l.Status == statusFinish {
		return
	}
	at := fault.Span{Object: t.status}
	if want := count64(l.DataSize); want >= 0 && want != h.bytes && (want > h.bytes || l.UpdateFrom == "") {
		v.tell("carbon.segment.size", at, "dataSize", "segment %s: %d bytes of data files, there are %d", l.Name, want, h.bytes)
	}
	if want := count64(l.IndexSize); want >= 0 && want != h.indexes && (want > h.indexes || l.UpdateFrom == "") {
		v.tell("carbon.segment.size", at, "indexSize", "segment %s: %d bytes of index files, there are %d", l.Name, want, h.indexes)
	}
}

// segmentBounds holds the least and greatest values that the segment file keeps of each column against those of its blocklets, by which Carbon skips segments.
// alone says that no index tells whether the files are the segment's.
func (v *verifier) segmentBounds(t *managed, l *load, parts []part, alone bool) {
	known, at, err := t.keptBounds(v.ctx, l)
	if err != nil {
		v.blame("carbon.segment.minmax", err, -1, -1)
		return
	}
	for _, id := range sorted(known) {
		if t.ids != nil && !t.ids[id] {
			v.tell("carbon.segment.minmax", at, "segmentMetaDataInfo."+id, "segment %s: no column of the table has or had this id", l.Name)
		}
	}
	if alone {
		if err := t.tied(v.ctx, l, parts); err != nil {
			v.blame("carbon.segment.minmax", err, -1, -1)
			return
		}
	}
	for i := range parts {
		f, err := t.file(v.ctx, parts[i].name)
		if err != nil {
			continue // told with the file
		}
		for _, r := range f.keptColumns(known) {
			if err := l.within(at, f, r, known[r.id], nil); err != nil {
				v.column = r.name
				v.blame("carbon.segment.minmax", err, -1, -1)
			}
		}
	}
	v.column = ""
}

// keptBounds are the least and greatest values that the segment file of a load keeps, by the ids of columns; none of partitioned tables and of old ones.
func (t *managed) keptBounds(ctx context.Context, l *load) (map[string]*minMax, fault.Span, error) {
	at := fault.Span{Object: t.segmentFileOf(l)}
	var s segmentFile
	if l.Segment == "" || !l.counts() || readJSON(ctx, t.tree, at.Object, t.opts.Limits.WithDefaults(), &s) != nil || s.Metadata == "" {
		return nil, at, nil // what cannot be read was told when the files were looked for
	}
	known, err := parseSegmentBounds(s.Metadata, at, t.opts.Limits.WithDefaults().Metadata)
	return known, at, err
}

// keptColumns are the columns of a file whose bounds can be held against those that are known of them.
func (f *dataFile) keptColumns(known map[string]*minMax) (out []*column) {
	if f.version < 3 || f.stream != nil {
		return nil
	}
	for _, r := range f.roots {
		if known[r.id] != nil && !r.typ.complex() && !r.globalCodes() {
			out = append(out, r)
		}
	}
	return out
}

// within holds the bounds of a column in the blocklets of a file against those of the segment. seen, if there is one, is told those of each blocklet.
func (l *load) within(at fault.Span, f *dataFile, c *column, b *minMax, seen func(some *pred.Bounds)) error {
	path := "segmentMetaDataInfo." + c.id
	all := c.minMax(b, 0)
	for g := range f.footer.index {
		some := c.minMax(f.footer.index[g].minMax, c.chunk)
		if seen != nil {
			seen(some)
		}
		if some == nil {
			continue
		}
		if all == nil {
			if a, z, yes := c.crossed(b, 0); yes {
				return fault.Corruptf(at, path, "segment %s: the least value is %v, and the greatest %v", l.Name, a, z)
			}
			continue // not kept
		}
		below, ok1 := pred.Compare(*some.Min, *all.Min)
		above, ok2 := pred.Compare(*some.Max, *all.Max)
		if ok1 && below < 0 || ok2 && above > 0 {
			return fault.Corruptf(at, path, "segment %s: values from %v to %v, those of blocklet %d of %s go from %v to %v", l.Name, *all.Min, *all.Max, g, f.at.Object, *some.Min, *some.Max)
		}
	}
	return nil
}

// The classes of which segmentMetaDataInfo is made: a map from the ids of columns.
const segmentClass = "org.apache.carbondata.core.segmentmeta.SegmentMetaDataInfo"

// parseSegmentBounds reads segmentMetaDataInfo: a serialized Java object, compressed, in base64. It gives bounds by the ids of columns.
func parseSegmentBounds(text string, at fault.Span, limit int64) (map[string]*minMax, error) {
	bad := func(format string, args ...any) (map[string]*minMax, error) {
		return nil, fault.Corruptf(at, "segmentMetaDataInfo", format, args...)
	}
	zipped, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return bad("%v", err)
	}
	b, err := codec.Expand("gzip", zipped, limit, func(n int) []byte { return make([]byte, n) })
	if err != nil {
		var e *fault.Error
		if errors.As(err, &e) && e.Class == fault.Limit {
			return nil, fault.Limitf(at, "segmentMetaDataInfo", "%v", err)
		}
		return bad("%v", err)
	}
	c := wire.NewCursor(b, fault.Span{Len: int64(len(b))}, "")
	o := parseJavaObject(be{c})
	if c.Err() != nil {
		return bad("%v", c.Err())
	}
	all, ok := o.fields["segmentColumnMetaDataInfoMap"].(*javaValues)
	if !ok || o.class != segmentClass || len(all.own)%2 != 0 {
		return bad("%s, not a map of columns", o.class)
	}
	out := map[string]*minMax{}
	for i := 0; i < len(all.own); i += 2 {
		id, ok1 := all.own[i].(string)
		one, ok2 := all.own[i+1].(*javaValues)
		if !ok1 || !ok2 {
			return bad("entry %d is not a column", i/2)
		}
		lo, _ := one.fields["columnMinValue"].([]byte)
		hi, _ := one.fields["columnMaxValue"].([]byte)
		out[id] = &minMax{min: [][]byte{bytes.Clone(lo)}, max: [][]byte{bytes.Clone(hi)}}
	}
	return out, nil
}

// leftovers tells what lies in the table's directories and is not read any more.
func (v *verifier) leftovers(t *managed) {
	if t.guessed == nil {
		v.oldUpdates(t)
	}
	v.left("delete deltas that nothing names any more", v.replaced)
	for _, name := range v.replaced {
		var d deleteDelta
		err := readJSON(v.ctx, t.tree, name, v.o.Limits.WithDefaults(), &d)
		if err == nil && d.Block != parseFileName(name).block {
			err = fault.Corruptf(fault.Span{Object: name}, "blockName", "%q", d.Block)
		}
		v.oldDamage(err)
	}
	var segments []string
	for i := range t.loads {
		l := &t.loads[i]
		if l.counts() || l.Path != "" || l.foreign() {
			continue
		}
		places, err := t.folders(v.ctx, l)
		t.notes = nil
		for _, p := range places {
			if err == nil && path.Base(p.dir) == "Segment_"+l.Name && v.holdsFiles(p.dir) {
				segments = append(segments, fmt.Sprintf("%s (%s)", p.dir, l.Status))
			}
		}
	}
	v.left("segments that do not count, and are not verified", segments)
	v.unnamed(t)
}

// unnamed tells segments that were written to their end and that no status knows.
func (v *verifier) unnamed(t *managed) {
	var past []load
	_ = readJSON(v.ctx, t.tree, t.status+".history", v.o.Limits.WithDefaults(), &past) // most tables have none
	known := map[string]bool{}
	for _, l := range slices.Concat(t.loads, past) {
		known[l.Name], known[l.id()] = true, true
	}
	for info, err := range t.tree.List(v.ctx, path.Join(t.path, "Metadata", "segments")) {
		if err != nil || v.stopped {
			return // there are none
		}
		of, _ := segmentOf(path.Base(info.Name))
		if info.Dir || of == "" || known[of] {
			continue
		}
		var s segmentFile
		if readJSON(v.ctx, t.tree, info.Name, v.o.Limits.WithDefaults(), &s) != nil {
			continue
		}
		known[of] = true // it may have several segment files
		places, _ := t.located(info.Name, s, of)
		if i := slices.IndexFunc(places, v.holds); i >= 0 {
			v.tell("carbon.segment.unnamed", fault.Span{Object: info.Name}, "", "tablestatus does not name segment %s, whose files are in %s: its rows are not read", of, places[i].dir)
		}
	}
}

// holds reports whether one of the index files of a place is there.
func (v *verifier) holds(p place) bool {
	return slices.ContainsFunc(p.indexes, func(n string) bool {
		_, err := v.tree.Stat(v.ctx, path.Join(p.dir, n))
		return err == nil
	})
}

// holdsFiles reports whether there is anything in a directory.
func (v *verifier) holdsFiles(dir string) bool {
	for _, err := range v.tree.List(v.ctx, dir) {
		return err == nil
	}
	return false
}

// left tells of names of one kind at once.
func (v *verifier) left(what string, names []string) {
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
	v.tell("carbon.leftover", fault.Span{Object: at}, "", "%s: %s", what, strings.Join(some, ", "))
}

// oldDamage tells that a file cannot be read that nobody reads.
func (v *verifier) oldDamage(err error) {
	if err != nil {
		v.blame("carbon.leftover", err, -1, -1)
	}
}

const updatePrefix = "tableupdatestatus-"

// oldUpdates looks at the update statuses that tablestatus does not name.
func (v *verifier) oldUpdates(t *managed) {
	var old []string
	current := int64(-1)
	if stamp, ok := strings.CutPrefix(path.Base(t.updates), updatePrefix); ok {
		current = count64(stamp)
	}
	for info, err := range t.tree.List(v.ctx, path.Join(t.path, "Metadata")) {
		if err != nil {
			return // told by others
		}
		stamp, ok := strings.CutPrefix(path.Base(info.Name), updatePrefix)
		if !ok || info.Dir || info.Name == t.updates || strings.HasSuffix(stamp, ".crc") {
			continue
		}
		if at := count64(stamp); at > current {
			v.tell("carbon.update.newer", fault.Span{Object: info.Name}, "", "tablestatus names %s", orNone(path.Base(t.updates)))
			continue
		}
		old = append(old, info.Name)
		var list []update
		v.oldDamage(readJSON(v.ctx, t.tree, info.Name, v.o.Limits.WithDefaults(), &list))
	}
	slices.Sort(old)
	v.left("update statuses that later ones stand for", old)
}

func orNone(name string) string {
	if name == "." {
		return "none"
	}
	return name
}
