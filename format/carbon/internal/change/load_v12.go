package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// code checks that the format supports the columns, and opens the dictionaries of those that have one.
func (l *Load) code(ctx context.Context, roots []*schema.Column) (err error) {
	if err := l.checkCodes(roots); err != nil {
		return err
	}
	l.coded = l.sc
	if l.coder, err = newCoder(ctx, l, roots); err != nil || l.coder == nil {
		return err
	}
	l.coded, err = l.coder.schema(l.sc)
	return err
}

// checkCodes returns an error if the format of the load has no such columns, or codes of dictionaries are asked for
// that no column has.
func (l *Load) checkCodes(roots []*schema.Column) error {
	if l.wo.Version < 3 {
		if l.schema.Partition != nil {
			return fault.Unsupportedf(fault.Span{Object: l.dir}, "", "partitions need format 3")
		}
		if err := schema.CheckV12(l.list, l.wo.Version); err != nil {
			return err
		}
	}
	var keyed []*schema.Column
	for _, r := range roots {
		has := false
		r.Walk(func(c *schema.Column) { has = has || schema.HasGlobalCodes(c) })
		if !has {
			continue
		}
		if r.Type.Complex() && l.wo.Version == 3 {
			return fault.Unsupportedf(fault.Span{Object: l.dir}, r.Name,
				"lists and structs with global dictionaries are written in formats 1 and 2 only (writing option "+
					"version=2)")
		}
		keyed = append(keyed, r)
	}
	if len(keyed) == 0 && l.o.Dictionary.kind != "" {
		return fault.Invalidf("the table %s has no columns with a global dictionary (create it with property "+
			"dictionary_include=COLUMN,…)", l.dir)
	}
	return l.checkKeyed(keyed)
}

// lastVersion returns the options of the load. If they state no version, they get the version of the last valid
// segment, so that a table of format 1 or 2 stays readable for early releases when rows are updated or segments are
// compacted.
func (l *Load) lastVersion(ctx context.Context) (map[string]string, error) {
	if l.o.Opts["version"] != "" {
		return l.o.Opts, nil
	}
	s, err := readStatus(l.dir)
	if err != nil {
		return nil, err
	}
	i := len(s) - 1
	for i >= 0 && !status.StatusEntry(s[i]).Counts() {
		i--
	}
	if i < 0 || status.StatusEntry(s[i]).Text("segmentFile") != "" { // formats 1 and 2 have no segment file
		return l.o.Opts, nil
	}
	version, err := l.versionOf(ctx, filepath.Join(l.dir, "Fact", "Part0",
		"Segment_"+status.StatusEntry(s[i]).Text("loadName")))
	if err != nil || version == 3 {
		return l.o.Opts, err
	}
	opts := map[string]string{"version": fmt.Sprint(version)}
	maps.Copy(opts, l.o.Opts)
	return opts, nil
}

// versionOf returns the format version of a segment's data files; 3 if none can be read.
func (l *Load) versionOf(ctx context.Context, dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), layout.DataExt) {
			f, err := datafile.OpenFile(ctx, treeOf(l.o.tree), filepath.ToSlash(filepath.Join(dir, e.Name())),
				format.OpenOptions{})
			if errors.Is(err, fault.Corrupt) { // try another one
				continue
			}
			if err != nil {
				return 0, err
			}
			return f.Version, nil
		}
	}
	return 3, nil
}

// DayFirstTime formats milliseconds since 1970 in the form that tablestatus used up to release 1.2; later releases read
// both forms.
func DayFirstTime(ms int64) string {
	return fmt.Sprintf("%s:%03d", time.UnixMilli(ms).UTC().Format("02-01-2006 15:04:05"), ms%1000)
}

// closeV12 commits a load of formats 1 and 2: each task has an index file, and there is no segment file.
func (l *Load) closeV12(ctx context.Context, sum *LoadSummary) error {
	data := sum.Files[:0]
	for _, t := range l.order {
		for name, n := range t.files.sizes {
			if strings.HasSuffix(name, layout.IndexExt) {
				sum.IndexBytes += n
				sum.DataBytes -= n
			}
		}
	}
	for _, name := range sum.Files {
		if !strings.HasSuffix(name, layout.IndexExt) {
			data = append(data, name)
		}
	}
	slices.Sort(data)
	sum.Files = data
	dirs := map[string]bool{}
	for _, t := range l.order {
		for full := filepath.Join(l.dir, t.dir); len(full) > len(filepath.Clean(l.dir)); full = filepath.Dir(full) {
			dirs[full] = true
		}
	}
	for _, d := range layout.SortedKeys(dirs) { // new files must survive a crash before tablestatus names them
		if err := store.SyncDir(d); err != nil {
			return err
		}
	}
	return l.enter(ctx, sum, "", DayFirstTime)
}
