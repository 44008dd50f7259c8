package kudu

import (
	"context"
	"errors"
	"iter"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/region"
)

// Format is format "kudu": the directories of Kudu servers, alone or several together.
var Format = format.Format{
	Name:     "kudu",
	Title:    "Apache Kudu data directories: tables of whole tablets, with their history and write-ahead log",
	Probe:    probe,
	List:     plainList(list),
	Open:     plainOpen(open),
	Describe: plainDescribe(anatomy),
	Verify:   verify,
	Claims:   claims,
	Recover:  plainRecover(cluster.RecoverTable),
	ReadKeys: table.ReadTable.Keys(),
	Codes:    codes.Codes,
	InUse:    inUse,
	Together: true,
	Listings: listings,

	Unchecked: unchecked,
}

// probe looks for a server's directories.
func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil && tg.Name != "" || err == nil && !info.Dir {
		return format.No, nil
	}
	ls, err := fs.FindServers(ctx, tg.Tree, tg.Name, fs.FSOptions{Shallow: true})
	if err != nil || len(ls) == 0 {
		return format.No, ctx.Err()
	}
	for _, l := range ls {
		for _, dir := range append([]string{l.WALDir, l.MetaDir}, l.DataDirs...) {
			for _, name := range []string{fs.InstanceFile, fs.DirInstanceFile,
				path.Join(fs.DataSubdir, fs.DirInstanceFile)} {
				if _, err := tg.Tree.Stat(ctx, path.Join(dir, name)); dir != "" && err == nil {
					return format.Certain, nil
				}
			}
		}
	}
	return format.Likely, nil
}

// open opens a table.
func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	ro, err := table.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	t, err := cluster.OpenTable(ctx, tg, o, ro)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// list yields the tables of all servers, with their tablets, then lost tablets and unclaimed blocks.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		l, err := openLister(ctx, tg)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		named, more := l.tables(ctx, yield)
		if !more {
			return
		}
		if !named {
			if _, err := l.s.Pick(ctx, tg, ""); errors.Is(err, fault.Invalid) {
				yield(format.Entry{}, err)
				return
			}
		}
		if !l.s.AbsentTables(tg.Table, yield) {
			return
		}
		lost := l.s.LostEntries(tg.Table, l.loose)
		for _, e := range lost {
			if !yield(e, nil) {
				return
			}
		}
		if err := l.s.Incomplete(ctx, tg); err != nil {
			yield(format.Entry{}, err)
			return
		}
		if l.s.AnyTable() || len(lost) > 0 {
			return
		}
		if err := whyNone(l.s.Findings); err != nil {
			yield(format.Entry{}, err)
		}
	}
}

// lister lists the tables in servers' directories.
type lister struct {
	tg    format.Target
	ro    table.Options
	s     *cluster.Servers
	loose []region.Finding // findings about blocks that no superblock names
}

// openLister opens the servers, with the options that matter to a list.
func openLister(ctx context.Context, tg format.Target) (l *lister, err error) {
	if tg.Opts["schema"] != "" {
		return nil, fault.Invalidf("option schema=FILE is not for lists: the blocks that it reads belong to no table " +
			"(ls --unnamed lists them)")
	}
	o := tg.OpenOptions("wal", "partial", "unclaimed", "wal-dir", "data-dirs", "meta-dir")
	l = &lister{tg: tg}
	if l.ro, err = table.ParseOptions(o.Opts); err != nil {
		return nil, err
	}
	l.ro.Live = true // a running server is reported when tables are opened
	if l.s, err = cluster.Open(ctx, tg, format.OpenOptions{Limits: tg.Limits}, l.ro); err != nil {
		return nil, err
	}
	if tg.Table == "" && !l.ro.Blocks || tg.Table == cluster.UnclaimedName {
		if l.loose, err = l.s.Unclaimed(ctx); err != nil {
			return nil, err
		}
		l.s.Findings = append(l.s.Findings, l.loose...)
	}
	return l, nil
}

// tables yields the tables that the target names. named reports whether there was one, or the target names none in
// particular. more reports whether the list continues.
func (l *lister) tables(ctx context.Context, yield func(format.Entry, error) bool) (named, more bool) {
	what := l.tg.Table
	named = what == ""
	for _, ts := range l.s.Tables() {
		if !l.s.Matches(what, ts) || what == "" && ts[0].ID == meta.SystemCatalogID {
			continue // the master's own table can be read by its name
		}
		named = true
		e, err := l.s.Entry(ctx, ts)
		if err == nil && !l.ro.Gaps && what != ts[0].ID {
			var gaps []region.Finding
			gaps, err = l.s.Gaps(ctx, ts)
			e.Findings = append(gaps, e.Findings...)
		}
		about := l.s.Findings
		if what != "" && err == nil {
			about, err = l.s.About(ctx, ts)
		}
		if e.Findings = append(cluster.ToList(about), e.Findings...); !yield(e, err) || err != nil {
			return named, false
		}
	}
	return named, true
}

// whyNone returns the first damage that explains why there are no tables; nil if there is none.
func whyNone(findings []region.Finding) error {
	for _, x := range findings {
		if x.Severity >= region.Error || x.Part == meta.SystemCatalogID && x.Severity == region.Warning {
			return fault.Corruptf(x.At, x.Path, "%s", x.Message)
		}
	}
	return nil
}
