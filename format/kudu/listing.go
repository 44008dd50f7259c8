package kudu

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/region"
	"stoa/store"
)

// listings are the lists besides that of tables.
var listings = []format.Listing{
	{Name: "blocks", Columns: append(ListFields[:], "object", "offset"), List: plainListing(blocksBy(listNamed))},
	{Name: "unnamed", Columns: []string{"block-id", "object", "offset", "size", "kind", "type", "rows", "problem"},
		List: plainListing(blocksBy(listUnnamed))},
	{Name: "census", Columns: CensusFields, List: plainListing(census)},
	{Name: "history", Columns: HistoryFields, List: plainListing(history)},
	{Name: "rowsets", Columns: RowSetFields, List: plainListing(rowSets)},
}

// inUse is format.Format.InUse.
func inUse(ctx context.Context, t format.Target) error {
	return CheckUnused(ctx, t.Tree, t.Name, t.Opts)
}

// listNamed lists the blocks that superblocks name, with the fields and in the order of `kudu fs list`. A block that is
// missing or has a damaged footer has empty fields, and is a finding.
func listNamed(ctx context.Context, f *FS, _, wanted []*Tablet, add func([]string)) (findings []region.Finding,
	err error) {
	err = f.ListBlocks(ctx, wanted, true, func(l BlockLine) bool {
		object, offset := l.Place.At.Object, ""
		if object != "" {
			offset = strconv.FormatInt(l.Place.At.Off, 10)
		}
		add(append(slices.Clone(l.Values[:]), object, offset))
		if l.Err != nil && l.Place.At.Object != "" { // CheckBlocks reports the other blocks
			if x, ok := unreadableBlock(l.Tablet.ID, l.Err); ok {
				findings = append(findings, x)
			}
		}
		return true
	})
	if err == nil {
		err = f.CheckBlocks(ctx, wanted)
	}
	return findings, err
}

// unreadableBlock returns the finding about a damaged block of a tablet; false if err is not damage.
func unreadableBlock(tablet string, err error) (region.Finding, bool) {
	var e *fault.Error
	if !errors.As(err, &e) || e.Class != fault.Corrupt {
		return region.Finding{}, false
	}
	return codes.Codes.Of("file.unreadable", e, tablet), true
}

// listUnnamed lists the blocks that no superblock names, and CFiles without an id in containers whose metadata is
// damaged.
func listUnnamed(ctx context.Context, f *FS, all, _ []*Tablet, add func([]string)) ([]region.Finding, error) {
	places, err := f.Unnamed(ctx, all)
	if err != nil && !errors.As(err, new(*fault.Error)) {
		return nil, err
	}
	row := func(id string, at fault.Span, kind cfile.Kind, typ cfile.Type, rows int64, why error) {
		v := []string{id, at.Object, strconv.FormatInt(at.Off, 10), strconv.FormatInt(at.Len, 10), "", "", "", ""}
		if why == nil {
			v[4], v[5], v[6] = kind.String(), typ.String(), grouped(rows)
		} else {
			v[7] = problemOf(why)
		}
		add(v)
	}
	for _, p := range places {
		src, err := f.OpenBlock(ctx, p)
		if err != nil {
			return nil, err
		}
		r, err := cfile.OpenReader(ctx, src, p.At.Object,
			format.OpenOptions{Limits: f.Options.Limits.Apart(), NoVerify: f.Options.NoVerify})
		id := strconv.FormatUint(p.ID, 10)
		if err != nil {
			row(id, p.At, 0, 0, -1, err)
		} else {
			row(id, p.At, r.Kind(), r.Footer().Type, r.Len(), nil)
		}
		src.Close()
	}
	for _, c := range f.Containers {
		if c.Metadata != "" && !c.Unknown {
			continue // everything but its live blocks was deleted
		}
		carved, err := f.Carve(ctx, c)
		if err != nil && !errors.As(err, new(*fault.Error)) {
			return nil, err
		}
		for _, x := range carved {
			row("", x.At, x.Kind, x.Type, x.Rows, x.Err)
		}
	}
	return nil, ctx.Err()
}

// problemOf returns the reason why a block cannot be read, without its span, which has its own columns.
func problemOf(err error) string {
	var e *fault.Error
	switch {
	case !errors.As(err, &e):
		return err.Error()
	case e.Class == fault.Unsupported:
		return e.Reason
	}
	c := *e
	c.At = fault.Span{}
	return c.Error()
}

// grouped formats a number with commas as thousands separators; "" if it is negative, which means unknown.
func grouped(n int64) string {
	if n < 0 {
		return ""
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// blocksBy extends a list for a single server to all servers in a target. of is called for each server, with all its
// tablets and with those that the target and option tablet select.
func blocksBy(of func(ctx context.Context, f *FS, all, wanted []*Tablet, add func([]string)) ([]region.Finding,
	error)) func(context.Context, format.Target, format.OpenOptions, func([]string)) ([]region.Finding, error) {
	return func(ctx context.Context, t format.Target, o format.OpenOptions,
		add func([]string)) (findings []region.Finding, err error) {
		fo := FSOptions{Limits: o.Limits, NoVerify: o.NoVerify}
		given := Layout{WALDir: o.Opts["wal-dir"], MetaDir: o.Opts["meta-dir"]}
		if dirs := o.Opts["data-dirs"]; dirs != "" {
			given.DataDirs = strings.Split(dirs, ",")
		}
		layouts, err := Layouts(ctx, t.Tree, t.Name, given, fo)
		if err != nil {
			return nil, err
		}
		if len(layouts) == 0 {
			return nil, fault.Unsupportedf(fault.Span{Object: t.Name}, "",
				"blocks are listed of Kudu directories, and there are none here")
		}
		if err := CheckUnused(ctx, t.Tree, t.Name, o.Opts); err != nil {
			return nil, err
		}
		tablet := o.Opts["tablet"]
		listed, read := false, 0
		var first error
		for _, l := range layouts {
			f, all, err := openListed(ctx, t.Tree, l, fo)
			if errors.Is(err, fault.Unsupported) { // the other servers are read
				first = cmp.Or(first, err)
				findings = append(findings, Unreadable(l, err))
				continue
			}
			if err != nil {
				return findings, err
			}
			read++
			var wanted []*Tablet
			for _, x := range all {
				if (t.Table == "" || t.Table == x.Table || t.Table == x.TableID || t.Table == x.ID) &&
					(tablet == "" || tablet == x.ID) {
					wanted = append(wanted, x)
					listed = true
				}
			}
			some, err := of(ctx, f, all, wanted, add)
			findings = append(append(findings, some...), f.Findings...)
			if err != nil {
				return findings, err
			}
		}
		switch {
		case read == 0:
			return nil, first
		case !listed && tablet != "":
			return findings, fault.Invalidf("there is no tablet %s in %s", tablet, t.Name)
		case !listed && t.Table != "":
			return findings, fault.Invalidf("there is no table or tablet %q in %s", t.Table, t.Name)
		}
		return findings, nil
	}
}

// openListed opens a server's directories and reads its superblocks.
func openListed(ctx context.Context, tree store.Tree, l Layout, fo FSOptions) (*FS, []*Tablet, error) {
	f, err := OpenFS(ctx, tree, l, fo)
	if err != nil {
		return nil, nil, err
	}
	all, err := f.Tablets(ctx)
	return f, all, err
}
