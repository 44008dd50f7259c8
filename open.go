package stoa

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/arrowschema"
	"stoa/internal/fieldnames"
	"stoa/internal/parked"
	"stoa/internal/scan"
	"stoa/internal/share"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// metaCache is how many bytes of footers and indexes a source keeps.
const metaCache = 64 << 20

// pageCache is how many bytes of decoded pages a table keeps for look-ups.
const pageCache = 256 << 20

// parkFrom is how many sources a table that is only planned keeps open: about 70 kB each.
const parkFrom = 2000

// openFiles is how many files a source holds open at a time; the limit of a process is often 1024.
const openFiles = 256

// Open opens one source: PATH, or PATH#TABLE where a place holds several tables. PATH may be a file, a glob, or a
// directory, either a format's own or one of files that together are a table. @FILE names a place made of several
// directories, which are listed in FILE: see store.Roots. PATH may also be an address, s3://BUCKET/KEY or
// https://HOST/PATH, if a client for it is imported: see package store/remote. Errors about the content are
// *fault.Error; a name that does not exist is fs.ErrNotExist.
func Open(ctx context.Context, uri string, o OpenOptions) (*Table, error) {
	return OpenAll(ctx, []string{uri}, o)
}

// Session returns a context in which a place that keeps many tables (Kudu) is opened once for all of them: for callers
// that open tables one after another, as List names them. The place must not change meanwhile, except that a table
// whose own metadata changed is opened again.
func Session(ctx context.Context) context.Context { return format.WithSession(ctx) }

// OpenAll opens several sources with the same schema as one table. The rows follow in the order of the sources. Places
// that are parts of one, or hold copies of the same rows, such as the disks of a Kudu cluster, are opened as one.
func OpenAll(ctx context.Context, uris []string, o OpenOptions) (*Table, error) {
	var targets []found
	uris, o, err := o.placed(ctx, uris...)
	if err == nil {
		err = o.Share.Check()
	}
	if err != nil {
		return nil, err
	}
	uris, o.Share = share.Some(o.Share, uris)
	for _, uri := range uris {
		some, err := resolveURI(ctx, uri, o)
		if err == nil && !o.Recover {
			err = cut(some)
		}
		if err == nil {
			err = single(ctx, some, o)
		}
		if err != nil {
			return nil, err
		}
		targets = append(targets, some...)
	}
	if len(targets) == 0 {
		return nil, fault.Invalidf("nothing to open")
	}
	return openTogether(ctx, targets, o)
}

// openTargets opens targets as one table.
func openTargets(ctx context.Context, targets []found, o OpenOptions) (*Table, error) {
	t := &Table{opened: o}
	pages := pagesOf(o)
	parks := o.Planned && len(targets) > parkFrom
	for _, tg := range targets {
		s, findings, err := openOnly(ctx, tg, o)
		if err != nil {
			t.Close()
			return nil, err
		}
		s.scan.Pages, s.share = pages, tg.share
		t.sources = append(t.sources, s)
		t.findings = append(append(t.findings, tg.passed()...), findings...)
		if err = t.join(s); err == nil && parks && parked.May(s.format, s.reader) {
			err = t.park(s, tg)
		}
		if err != nil {
			t.Close()
			return nil, err
		}
	}
	return t, nil
}

// join makes s's schema fit the table's.
func (t *Table) join(s *source) (err error) {
	if t.schema == nil {
		t.schema = s.reader.Schema()
		return nil
	}
	t.schema, err = arrowschema.Fit(t.schema, s.reader.Schema(), t.sources[0].name, s.name)
	return err
}

// openOnly opens a target. It returns an error for a directory that has other tables than the one opened.
func openOnly(ctx context.Context, tg found, o OpenOptions) (*source, []region.Finding, error) {
	switch several, err := mayHoldSeveral(ctx, tg, o); {
	case err != nil:
		return nil, nil, err
	case !several:
		return openOne(ctx, tg, o)
	}
	seen := newOpened(tg.Tree)
	tg.Tree = seen
	s, findings, err := openOne(ctx, tg, o)
	if !unnamed(err) {
		return nil, nil, err
	}
	if only := checkOnlyTable(ctx, tg, seen, o); only != nil {
		if s != nil {
			only = errors.Join(only, s.close())
		}
		return nil, nil, only
	}
	return s, findings, err
}

// Unrecovered reports why recovery gave up, with the findings up to then.
type Unrecovered struct {
	Findings []region.Finding
	Err      error
}

func (e *Unrecovered) Error() string { return e.Err.Error() }
func (e *Unrecovered) Unwrap() error { return e.Err }

func openOne(ctx context.Context, tg found, o OpenOptions) (*source, []region.Finding, error) {
	if err := checkOptionFormats(o.Typed, tg.format, tg.Name); err != nil {
		return nil, nil, err
	}
	data := store.NewOpenLimiter(tg.Tree, openFiles)
	stamp := data.Stamp(ctx, tg.Name) // taken before anything is read, so that later changes show
	meta := store.NewCache(data, metaCache)
	inner := tg.Target
	inner.Tree = meta
	var r format.Reader
	var findings []region.Finding
	var err error
	switch {
	case o.Recover && tg.format.Recover != nil:
		r, findings, err = tg.format.Recover(ctx, inner, o.internal())
	case tg.format.Open == nil:
		err = fault.Unsupportedf(fault.Span{Object: tg.Name}, "", "%s files cannot be opened as a table",
			tg.format.Name)
	default:
		r, err = tg.format.Open(ctx, inner, o.internal())
	}
	if err != nil {
		if len(findings) > 0 {
			err = &Unrecovered{findings, err}
		}
		return nil, nil, errors.Join(err, meta.Close())
	}
	if err := o.Limits.Fit(r.Schema(), fault.Span{Object: tg.Name}, "schema"); err != nil {
		return nil, nil, errors.Join(err, meta.Close())
	}
	name := tg.Name
	if tg.Table != "" {
		name += "#" + tg.Table
	}
	findings = append(findings, fieldnames.Findings(r.Schema(), tg.Name)...)
	return &source{name: name, file: tg.Name, stamp: stamp, format: tg.format, declared: tg.declared(o),
		reader: r, meta: meta, data: data,
		scan: scan.Source{Reader: r, Objects: scan.NewObjects(format.Plain(r, data)).Mapped(o.Mmap),
			Dicts: scan.NewDicts(), Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify}}, findings, nil
}

// declared returns a function that opens a target without recovery and returns the number of rows that it declares.
func (f found) declared(o OpenOptions) func(ctx context.Context) (int64, error) {
	o.Recover = false
	return func(ctx context.Context) (int64, error) {
		s, _, err := openOne(ctx, f, o)
		if err != nil {
			return -1, err
		}
		plain := &Table{schema: s.reader.Schema(), sources: []*source{s}, opened: o}
		n, err := plain.Rows(ctx)
		return n, errors.Join(err, plain.Close())
	}
}

// pagesOf returns the cache in which the sources of a table keep decoded pages.
func pagesOf(o OpenOptions) *vec.Cache {
	switch {
	case o.KeepPages < 0:
		return nil
	case o.KeepPages == 0:
		return vec.NewCache(pageCache)
	}
	return vec.NewCache(o.KeepPages)
}

// park closes a source, and keeps what a plan needs to know of it before it is opened again.
func (t *Table) park(s *source, tg found) error {
	tg.below, tg.left, s.as = nil, nil, s.planned()
	t.findings = append(t.findings, parked.Findings(s.reader)...)
	r := t.parked.Of(s.reader)
	err := s.close()
	s.reader, s.scan, s.meta, s.data, s.declared = r, scan.Source{}, nil, nil, nil
	s.reopen = func(ctx context.Context) (*source, error) {
		out, _, err := openOne(ctx, tg, t.opened)
		if err == nil && out.planned() != s.as {
			err = errors.Join(changedSince("it was opened", s.file, s.as, out.planned()), out.close())
		}
		return out, err
	}
	return err
}

// OpenFS is Open for a name in an fs.FS: an embed.FS, a zip archive, os.DirFS, or any other (see store.FS, also for
// what is read into memory). o.Tree is ignored.
func OpenFS(ctx context.Context, fsys fs.FS, name string, o OpenOptions) (*Table, error) {
	o.Tree = store.FS(fsys)
	return Open(ctx, name, o)
}

// OpenReaderAt opens the file that r reads, of size bytes. name appears in errors; if neither o.From nor the contents
// identify the format (as with CSV), the extension of name does. r remains the caller's: it must be safe for concurrent
// use, and must not change or be closed before Close. o.Tree is ignored.
func OpenReaderAt(ctx context.Context, r io.ReaderAt, size int64, name string, o OpenOptions) (*Table, error) {
	if r == nil || size < 0 {
		return nil, fault.Invalidf("%s: a reader and a size of at least 0 are needed, got %T and %d", name, r, size)
	}
	o.Tree = store.One(name, r, size)
	return Open(ctx, name, o)
}
