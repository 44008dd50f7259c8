package kudu

import (
	"context"
	"errors"
	"iter"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// Format is Kudu's directories as the front of stoa sees them.
var Format = format.Format{
	Name:     "kudu",
	Title:    "Apache Kudu data directories: tables of whole tablets, with their history and write-ahead log",
	Probe:    probe,
	List:     list,
	Open:     open,
	Describe: describe,
	Verify:   verify,
	Claims:   claims,
	Recover:  recoverTable,
	ReadKeys: readKeys,
	Codes:    Codes,

	Unchecked: unchecked,
}

// probe looks for a server's directories.
func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil && tg.Name != "" || err == nil && !info.Dir {
		return format.No, nil
	}
	ls, err := FindServers(ctx, tg.Tree, tg.Name, FSOptions{})
	if err != nil || len(ls) == 0 {
		return format.No, ctx.Err()
	}
	for _, l := range ls {
		for _, dir := range append([]string{l.WALDir, l.MetaDir}, l.DataDirs...) {
			for _, name := range []string{instanceFile, dirInstanceFile, path.Join(dataDir, dirInstanceFile)} {
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
	ro, err := parseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	t, err := openTable(ctx, tg, o, ro)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// list gives the tables of all servers, and their tablets.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		if tg.Opts["schema"] != "" {
			yield(format.Entry{}, fault.Invalidf("a list has no use for option schema=FILE: the blocks that it reads have no table (ls --unnamed lists them)"))
			return
		}
		ro := readOptions{at: latest}
		for _, k := range []string{"wal", "partial", "wal-dir", "data-dirs", "meta-dir"} {
			if v, ok := tg.Opts[k]; ok {
				ro.set(k, v)
			}
		}
		ro.live = true // the server is named when the tables are opened
		s, err := openServers(ctx, tg, format.OpenOptions{}, ro)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		var loose []region.Finding
		if tg.Table == "" && !ro.gaps || tg.Table == unclaimedName {
			if loose, err = s.unclaimed(ctx); err != nil {
				yield(format.Entry{}, err)
				return
			}
			s.findings = append(s.findings, loose...)
		}
		named := tg.Table == ""
		for _, ts := range s.tables() {
			if !s.means(tg.Table, ts) || tg.Table == "" && ts[0].ID == systemCatalogID {
				continue // a master's own can be read by its name
			}
			named = true
			e, err := s.entry(ctx, ts)
			if err == nil && !ro.gaps && tg.Table != ts[0].ID {
				e.Findings = append(s.gaps(ts), e.Findings...)
			}
			about := s.findings
			if tg.Table != "" {
				about = s.about(ts)
			}
			if e.Findings = append(toList(about), e.Findings...); !yield(e, err) || err != nil {
				return
			}
		}
		if !named {
			if _, err := s.pick(ctx, tg, ""); errors.Is(err, fault.Invalid) {
				yield(format.Entry{}, err)
				return
			}
		}
		if !s.elsewhere(tg.Table, yield) {
			return
		}
		lost := s.lostEntries(tg.Table, loose)
		for _, e := range lost {
			if !yield(e, nil) {
				return
			}
		}
		if err := s.halves(ctx, tg); err != nil {
			yield(format.Entry{}, err)
			return
		}
		if s.anyTable() || len(lost) > 0 {
			return
		}
		for _, x := range s.findings { // why there is none
			if x.Severity >= region.Error || x.Part == systemCatalogID && x.Severity == region.Warning {
				yield(format.Entry{}, fault.Corruptf(x.At, x.Path, "%s", x.Message))
				return
			}
		}
	}
}
