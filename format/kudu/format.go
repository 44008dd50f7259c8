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

// Format is Kudu's directories as the front of stoa sees them.
var Format = format.Format{
	Name:     "kudu",
	Title:    "Apache Kudu data directories: tables of whole tablets, with their history and write-ahead log",
	Probe:    probe,
	List:     list,
	Open:     open,
	Describe: anatomy,
	Verify:   verify,
	Claims:   claims,
	Recover:  cluster.RecoverTable,
	ReadKeys: table.ReadTable.Keys(),
	Codes:    codes.Codes,
	InUse:    inUse,
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

// list returns the tables of all servers, and their tablets.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		if tg.Opts["schema"] != "" {
			yield(format.Entry{}, fault.Invalidf("a list has no use for option schema=FILE: the blocks that it "+
				"reads have no table (ls --unnamed lists them)"))
			return
		}
		opts := map[string]string{}
		for _, k := range []string{"wal", "partial", "unclaimed", "wal-dir", "data-dirs", "meta-dir"} {
			if v, ok := tg.Opts[k]; ok {
				opts[k] = v
			}
		}
		ro, err := table.ParseOptions(opts)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		ro.Live = true // the server is named when the tables are opened
		s, err := cluster.Open(ctx, tg, format.OpenOptions{Limits: tg.Limits}, ro)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		var loose []region.Finding
		if tg.Table == "" && !ro.Blocks || tg.Table == cluster.UnclaimedName {
			if loose, err = s.Unclaimed(ctx); err != nil {
				yield(format.Entry{}, err)
				return
			}
			s.Findings = append(s.Findings, loose...)
		}
		named := tg.Table == ""
		for _, ts := range s.Tables() {
			if !s.Means(tg.Table, ts) || tg.Table == "" && ts[0].ID == meta.SystemCatalogID {
				continue // a master's own can be read by its name
			}
			named = true
			e, err := s.Entry(ctx, ts)
			if err == nil && !ro.Gaps && tg.Table != ts[0].ID {
				e.Findings = append(s.Gaps(ts), e.Findings...)
			}
			about := s.Findings
			if tg.Table != "" {
				about = s.About(ts)
			}
			if e.Findings = append(cluster.ToList(about), e.Findings...); !yield(e, err) || err != nil {
				return
			}
		}
		if !named {
			if _, err := s.Pick(ctx, tg, ""); errors.Is(err, fault.Invalid) {
				yield(format.Entry{}, err)
				return
			}
		}
		if !s.Elsewhere(tg.Table, yield) {
			return
		}
		lost := s.LostEntries(tg.Table, loose)
		for _, e := range lost {
			if !yield(e, nil) {
				return
			}
		}
		if err := s.Halves(ctx, tg); err != nil {
			yield(format.Entry{}, err)
			return
		}
		if s.AnyTable() || len(lost) > 0 {
			return
		}
		for _, x := range s.Findings { // why there is none
			if x.Severity >= region.Error || x.Part == meta.SystemCatalogID && x.Severity == region.Warning {
				yield(format.Entry{}, fault.Corruptf(x.At, x.Path, "%s", x.Message))
				return
			}
		}
	}
}
