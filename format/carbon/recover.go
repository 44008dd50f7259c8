package carbon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// Recovering finds the blocklets of a data file of format 3 whose header or footer is damaged: as an index file beside it knows
// them, or one column chunk after the other from the header on (each says how long its pages are). Of a table it also gets over a
// status that cannot be read (every segment that has a directory is taken), an update status (the newest one that is whole is taken, with the
// delete deltas that are newer), a delete delta (its rows come back), and a schema (the data files say their columns). Formats 1 and 2 have everything in the footer: without it nothing is found.

// recoverTable opens what a target is as well as it goes.
func recoverTable(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, []region.Finding, error) {
	var mu sync.Mutex
	var all []region.Finding
	saved := func(f []region.Finding) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, f...)
	}
	r, err := reopen(ctx, tg, op, saved)
	mu.Lock()
	defer mu.Unlock()
	return r, slices.Clone(all), err
}

func reopen(ctx context.Context, tg format.Target, op format.OpenOptions, saved func([]region.Finding)) (format.Reader, error) {
	o, err := parseOptions(op.Opts)
	if err == nil {
		err = o.complete(ctx, tg.Tree, op.Limits)
	}
	if err != nil {
		return nil, err
	}
	at := tg
	tg, k, err := resolve(ctx, at, &o)
	if err != nil && k == kindNone && at.Table == "" && holdsPartitions(ctx, at.Tree, at.Name) { // who says that it is a table is believed
		k, err = kindTable, nil
	}
	if err != nil {
		return nil, err
	}
	switch k {
	case kindFile:
		return openFiles(ctx, tg, op, o, []string{tg.Name}, saved)
	case kindFiles:
		names, err := dataFiles(ctx, tg)
		if err != nil {
			return nil, err
		}
		return openFiles(ctx, tg, op, o, names, saved)
	case kindTable:
		t, err := openManaged(ctx, tg.Tree, tg.Name, op, o, saved)
		if err != nil {
			return withoutSchema(ctx, tg, op, o, saved, err)
		}
		if list, err := t.all(ctx); err == nil {
			for _, p := range list { // so that what is lost is told now, and not while rows are read
				f, err := t.file(ctx, p.name)
				if err != nil && !errors.Is(err, fault.Corrupt) {
					return nil, err
				}
				if err == nil && f.footAt > 0 {
					if err := f.agrees(p); err != nil {
						saved([]region.Finding{saying("carbon.index.disagree", f.footSpan(), p.name, "%v: the rows of the data file are read; it may be another one than was loaded", err)})
					}
				}
				if p.update != nil {
					if _, err := t.readDeletes(ctx, p.update, path.Dir(p.name)); err != nil {
						return nil, err
					}
				}
			}
		}
		return t.reader(), nil
	}
	return open(ctx, tg, op)
}

// saying is a finding of recovery. Of errors about the same place only the reason is said.
func saying(code string, at fault.Span, part, format string, args ...any) region.Finding {
	for i, a := range args {
		if err, _ := a.(error); err == nil {
			continue
		} else if e := (*fault.Error)(nil); errors.As(err, &e) && e.At.Object == at.Object && e.Cause == nil {
			args[i] = e.Reason
		}
	}
	f := region.Finding{Code: code, Severity: severityOf(code), At: at, Part: part, Message: fmt.Sprintf(format, args...), Rows: [2]int64{-1, -1}, Lost: -1}
	if f.Severity < region.Error {
		f.Lost = 0
	}
	return f
}

// withoutSchema opens the data files of a table whose schema cannot be read, and whose segments cannot be found.
func withoutSchema(ctx context.Context, tg format.Target, op format.OpenOptions, o readOptions, saved func([]region.Finding), why error) (format.Reader, error) {
	var e *fault.Error
	if !errors.As(why, &e) || e.Class != fault.Corrupt || path.Base(e.At.Object) != "schema" {
		return nil, why
	}
	names, err := filesBelow(ctx, tg.Tree, tg.Name, 8)
	if err == nil && len(names) == 0 {
		err = why // nothing is left of the table
	}
	if err != nil {
		return nil, err
	}
	saved([]region.Finding{saying("carbon.schema.damaged", e.At, tg.Name, "%v: all data files are read by the columns that they say; partitions, deletes and the status are not looked at", why)})
	return openFiles(ctx, tg, op, o, names, saved)
}

// guessSchema takes the columns of the newest data file that can be opened; the ids are those of all files, so that columns that came later are
// null in older ones. Partition columns of the directories are in no file.
func (t *managed) guessSchema(ctx context.Context, why error) error {
	list, err := t.all(ctx)
	if err != nil {
		return err
	}
	var newest *dataFile
	ids, latest := map[string]bool{}, int64(-2)
	for _, p := range list {
		f, err := t.open(ctx, p.name)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
		if err != nil {
			continue
		}
		for _, r := range f.roots {
			ids[r.id] = true
		}
		if at := parseFileName(p.name).time; at > latest {
			newest, latest = f, at
		}
	}
	if newest == nil {
		return why
	}
	var e *fault.Error
	errors.As(why, &e)
	t.ids = ids
	t.saved([]region.Finding{saying("carbon.schema.damaged", e.At, t.path, "%v: the columns are those of %s; partition columns, which only directories tell, are lost", why, path.Base(newest.at.Object))})
	return t.columns(newest.roots)
}

// filesBelow are the data files below a directory.
func filesBelow(ctx context.Context, tree store.Tree, dir string, depth int) (out []string, err error) {
	for info, err := range tree.List(ctx, dir) {
		if err != nil {
			return nil, err
		}
		switch {
		case info.Dir && depth > 0:
			more, err := filesBelow(ctx, tree, info.Name, depth-1)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		case !info.Dir && strings.HasSuffix(info.Name, dataExt):
			out = append(out, info.Name)
		}
	}
	return out, nil
}

// guessStatus gets over a tablestatus, or an update status, that cannot be read. Without tablestatus every segment counts that has a directory or
// a segment file.
func (t *managed) guessStatus(ctx context.Context, why error) error {
	var e *fault.Error
	errors.As(why, &e)
	how := ""
	loads, err := t.readLoads(ctx)
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return err
	}
	if err != nil {
		if loads, err = t.guessLoads(ctx); err != nil || len(loads) == 0 {
			return why
		}
		how = fmt.Sprintf("all %d segments that have a directory or a segment file are read, also those that were compacted or deleted; %s", len(loads), compactions(loads))
	}
	t.loads = loads
	deletes, err := t.guessDeletes(ctx)
	if err != nil {
		return err
	}
	t.saved([]region.Finding{saying("carbon.status.damaged", e.At, t.path, "%v: %s%s", why, how, deletes)})
	return nil
}

// compactions says which segments have the rows of others once more: N.1 is what N and others, which no name says, were compacted to.
func compactions(loads []load) string {
	var all []string
	for i := range loads {
		if name := loads[i].Name; segmentNumber.MatchString(name) && strings.Contains(name, ".") {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	first, _, _ := strings.Cut(all[0], ".")
	return fmt.Sprintf("%s came of compacting (%s of %s and others), and the rows of what was compacted are there twice if it is there still (--source-opt segments=N,N,… reads only what it names); ", strings.Join(all, ", "), all[0], first)
}

// updatesPrefix is with what the names of update statuses begin; their time follows.
const updatesPrefix = "tableupdatestatus-"

// guessedDeletes is by which rule delete deltas hold that no update status names: those that are younger than the one that is there.
type guessedDeletes struct {
	after, until int64           // times of deltas
	bare         map[string]bool // segments that have deletes, and no entry in the update status
}

// guessDeletes takes the newest update status that is whole for the one that holds, and lets deltas that are newer hold, too: they have their
// block and their time in their names. It says what it did.
func (t *managed) guessDeletes(ctx context.Context) (string, error) {
	g := &guessedDeletes{after: -1, until: math.MaxInt64, bare: map[string]bool{}}
	t.guessed, t.changes, t.updates = g, map[string]*update{}, ""
	if len(t.loads) > 0 && t.loads[0].Updates != "" {
		if ms, ok := millis(strings.TrimPrefix(t.loads[0].Updates, updatesPrefix)); ok {
			g.until = ms
		}
	}
	names, err := t.updateStatuses(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		ms, _ := millis(strings.TrimPrefix(path.Base(name), updatesPrefix))
		if ms > g.until {
			continue // of a change that never was
		}
		var list []update
		t.updates = name
		err := readJSON(ctx, t.tree, name, t.opts.Limits, &list)
		if err == nil {
			err = t.checkEntries(ctx, list)
		}
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return "", err
		}
		if err != nil {
			continue
		}
		g.after = ms
		t.take(list)
		for i := range t.loads {
			l := &t.loads[i]
			g.bare[l.id()] = l.UpdateFrom != "" && !slices.ContainsFunc(list, func(u update) bool { return u.Segment == l.id() })
		}
		return fmt.Sprintf("rows are deleted as %s says, and the delete deltas beside their blocks that are newer", path.Base(name)), nil
	}
	t.updates = ""
	return "rows are deleted as all delete deltas say that lie beside their blocks", nil
}

// updateStatuses are the names of the update statuses, the newest first.
func (t *managed) updateStatuses(ctx context.Context) (out []string, err error) {
	for info, err := range t.tree.List(ctx, path.Join(t.path, "Metadata")) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if stamp, ok := strings.CutPrefix(path.Base(info.Name), updatesPrefix); ok && !info.Dir {
			if _, ok := millis(stamp); ok {
				out = append(out, info.Name)
			}
		}
	}
	at := func(name string) int64 {
		ms, _ := millis(strings.TrimPrefix(path.Base(name), updatesPrefix))
		return ms
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(at(b), at(a)) })
	return out, nil
}

// entry is what holds for a block: u is what the update status says of it, nil if nothing, deltas are the names of the delete deltas beside it.
func (g *guessedDeletes) entry(u *update, l *load, block string, deltas []string) *update {
	if u != nil && u.gone() {
		return u
	}
	out := &update{Segment: l.id(), Block: block, guessed: true}
	var from, to int64 = math.MaxInt64, -1
	if u != nil {
		out.Actual, out.Stamps = u.Actual, slices.Clone(u.Stamps) // also those that are not there: that is told
		if from, to = span64(u); count64(u.Deleted) > 0 && from == to {
			out.Stamps = []string{u.From}
		}
	}
	after := g.after
	if g.bare[l.id()] {
		after = -1
	}
	for _, name := range deltas {
		stamp, ok := strings.CutPrefix(strings.TrimSuffix(name, deltaExt), block+"-")
		at, isTime := millis(stamp)
		named := at >= from && at <= to && (u == nil || len(u.Stamps) == 0)
		if ok && isTime && (named || at > after && at <= g.until) && !slices.Contains(out.Stamps, stamp) {
			out.Stamps = append(out.Stamps, stamp)
		}
	}
	if u == nil && len(out.Stamps) == 0 {
		return nil
	}
	return out
}

// span64 are the times of the first and the last delta of an entry; none, if it has none.
func span64(u *update) (from, to int64) {
	from, ok1 := millis(u.From)
	to, ok2 := millis(u.To)
	if !ok1 || !ok2 || count64(u.Deleted) == 0 {
		return math.MaxInt64, -1
	}
	return from, to
}

// getOver tells, when recovering, of a delete delta that cannot be used, once for each name, and lets the rows come back. Else the error stays.
func (t *managed) getOver(name string, err error) error {
	if err == nil || t.saved == nil || !errors.Is(err, fault.Corrupt) {
		return err
	}
	if e := (*fault.Error)(nil); errors.As(err, &e) {
		t.sayOnce(name, saying("carbon.delete.damaged", e.At, t.path, "%v: it is left out, and rows that it deletes come back", err))
	}
	return nil
}

// sayOnce tells, when recovering, what was done about the file name, which may be asked for again.
func (t *managed) sayOnce(name string, f region.Finding) {
	t.noting.Lock()
	told := t.told[name]
	if t.told == nil {
		t.told = map[string]bool{}
	}
	t.told[name] = true
	t.noting.Unlock()
	if !told {
		t.saved([]region.Finding{f})
	}
}

// guessLoads are the segments that have a directory below Fact or, as those of partitioned tables, a segment file (N_TIME.segment; the
// latest one holds) or data files in the directories of partitions.
func (t *managed) guessLoads(ctx context.Context) ([]load, error) {
	found := map[string]*load{}
	add := func(name string) *load {
		if found[name] == nil {
			found[name] = &load{Name: name, Status: statusSuccess}
		}
		return found[name]
	}
	list := func(dir string, give func(info store.Info)) error {
		for info, err := range t.tree.List(ctx, dir) {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			give(info)
		}
		return nil
	}
	var parts []string
	err := list(path.Join(t.path, "Fact"), func(info store.Info) { parts = append(parts, info.Name) })
	for _, p := range parts {
		err = errors.Join(err, list(p, func(info store.Info) {
			if name, ok := strings.CutPrefix(path.Base(info.Name), "Segment_"); ok && info.Dir {
				add(name)
			}
		}))
	}
	err = errors.Join(err, list(path.Join(t.path, "Metadata", "segments"), func(info store.Info) {
		base := path.Base(info.Name)
		if name, _, ok := strings.Cut(base, "_"); ok && strings.HasSuffix(base, ".segment") && !info.Dir {
			if l := add(name); base > l.Segment {
				l.Segment = base
			}
		}
	}))
	err = errors.Join(err, partitionFiles(ctx, t.tree, t.path, func(_ string, _, files []string) bool {
		for _, f := range files {
			if of, _ := segmentOf(f); of != "" && strings.HasSuffix(f, dataExt) {
				add(of)
			}
		}
		return true
	}))
	var out []load
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[name])
	}
	return out, err
}

// recoverFile finds the blocklets of a file that could not be opened because of why. f is what was understood of it.
func recoverFile(ctx context.Context, f *dataFile, why error) (*dataFile, []region.Finding, error) {
	if f.at.Object == "" || f.at.Len == 0 {
		return nil, nil, why
	}
	part := f.at.Object
	code, at := "carbon.footer.damaged", f.at
	if e := (*fault.Error)(nil); errors.As(why, &e) && e.At.Object == f.at.Object {
		at = e.At
		if strings.HasPrefix(e.Path, "header") {
			code = "carbon.header.damaged"
		}
	}
	out := []region.Finding{saying(code, at, part, "%v", why)}
	if f.stream != nil && len(f.stream.fields) > 0 {
		lost, err := f.resync(ctx)
		for _, at := range lost {
			out = append(out, saying("carbon.rows.lost", at, part, "%d bytes between blocklets that can be read", at.Len))
		}
		return f, append(out, saying("carbon.recovered", f.at, part, "%d blocklets with %d rows, by the markers between them", len(f.stream.blocklets), f.footer.rows)), err
	}
	if f.version == 2 && f.headLen > 0 {
		g, lost, err := f.recover2(ctx)
		if err == nil && len(g.footer.blocklet) > 0 {
			err = g.layout()
		}
		if err != nil || len(g.footer.blocklet) == 0 {
			return nil, out, why
		}
		return g, append(append(out, saying("carbon.recovered", f.at, part, "%d blocklets with %d rows, found one after the other", len(g.footer.blocklet), g.footer.rows)), lost...), nil
	}
	if f.version == 2 || f.version == 1 && f.headLen == 0 && f.footAt >= 0 && len(f.footer.columns) > 0 {
		return nil, out, why
	}
	if known := f.besides(ctx); known != nil {
		g, lost := f.byIndex(known)
		if g != nil {
			out = append(out, saying("carbon.recovered", f.at, part, "%d blocklets, as the index file knows them", len(g.footer.blocklet)))
			return g, append(out, lost...), g.layout()
		}
	}
	if f.headLen == 0 {
		return nil, out, why
	}
	g, lost := f.walk(ctx)
	out = append(out, lost...)
	if err := g.layout(); err != nil {
		return nil, out, why
	}
	out = append(out, saying("carbon.recovered", f.at, part, "%d blocklets with %d rows, found one after the other", len(g.footer.blocklet), g.footer.rows))
	return g, out, nil
}

// besides is what an index file in the same directory says of the file; nil if none does.
func (f *dataFile) besides(ctx context.Context) *indexed {
	for info, err := range f.tree.List(ctx, path.Dir(f.at.Object)) {
		if err != nil {
			return nil
		}
		merged := strings.HasSuffix(info.Name, mergedExt)
		if !merged && !strings.HasSuffix(info.Name, indexExt) {
			continue
		}
		o, err := openObject(ctx, f.tree, info.Name, f.limits)
		if err != nil {
			continue
		}
		files, _ := o.readIndex(ctx, merged, nil)
		known := map[string]*indexed{}
		collect(known, files)
		if x := known[path.Base(f.at.Object)]; x != nil && x.blocks[0].info != nil {
			return x
		}
	}
	return nil
}

// byIndex makes the file of what an index file says; blocklets behind its end are lost.
func (f *dataFile) byIndex(x *indexed) (*dataFile, []region.Finding) {
	g := &dataFile{object: f.object, version: 3, header: f.header, headLen: f.headLen, footAt: f.at.Len, noVerify: f.noVerify}
	g.header.columns = x.columns
	g.footer.version = 3
	var lost []region.Finding
	var rows int64
	for i := range x.blocks {
		b := &x.blocks[i]
		if b.info == nil {
			return nil, nil
		}
		if end := max(b.info.end, b.info.dims); end > f.at.Len {
			l := saying("carbon.rows.lost", f.at.Sub(f.at.Len, 0), f.at.Object, "blocklet %d reaches to byte %d, the file has %d", i, end, f.at.Len)
			l.Rows, l.Lost = [2]int64{rows, rows + b.info.rows}, b.info.rows
			lost = append(lost, l)
			continue
		}
		rows += b.info.rows
		g.footer.blocklet = append(g.footer.blocklet, *b.info)
		g.footer.index = append(g.footer.index, blockletIndex{})
	}
	g.footer.rows = rows
	return g, lost
}

// walk finds column chunks one after the other.
func (f *dataFile) walk(ctx context.Context) (*dataFile, []region.Finding) {
	g := &dataFile{object: f.object, version: 3, header: f.header, headLen: f.headLen, footAt: f.headLen, noVerify: f.noVerify}
	g.footer.version = 3
	n := len(f.header.columns)
	dims := 0
	for i := range f.header.columns {
		if f.header.columns[i].dimension {
			dims++
		}
	}
	at := f.headLen
	for n > 0 && ctx.Err() == nil {
		b := blockletInfo{rows: -1}
		for range n {
			head, cc, ok := f.chunkHere(ctx, at)
			if !ok {
				break
			}
			if len(b.offsets) == 0 {
				b.take(cc)
			}
			b.offsets, b.lengths = append(b.offsets, at), append(b.lengths, int32(head))
			at += head
			for _, p := range cc.lengths {
				at += int64(p)
			}
			if len(b.offsets) == dims {
				b.dims = at
			}
		}
		if len(b.offsets) == 0 {
			return g, nil
		}
		if len(b.offsets) < n {
			l := saying("carbon.rows.lost", f.at.Sub(b.offsets[0], f.at.Len-b.offsets[0]), f.at.Object, "the blocklet that begins here has %d of %d column chunks: cells of the other columns are lost", len(b.offsets), n)
			l.Rows, l.Lost = [2]int64{g.footer.rows, g.footer.rows + b.rows}, b.rows
			b.whole = len(b.offsets)
			for len(b.offsets) < n { // nothing is there: reading it fails
				if len(b.offsets) == dims {
					b.dims = at
				}
				b.offsets, b.lengths = append(b.offsets, at), append(b.lengths, 0)
			}
			g.add(b, dims, at)
			return g, []region.Finding{l}
		}
		g.add(b, dims, at)
	}
	return g, nil
}

// add adds a blocklet that ends at an offset, of which so many column chunks are of dimensions.
func (g *dataFile) add(b blockletInfo, dims int, end int64) {
	b.end = end
	switch {
	case dims == 0:
		b.dims = b.offsets[0]
	case b.dims == 0:
		b.dims = end
	}
	g.footAt = end
	g.footer.rows += b.rows
	g.footer.blocklet = append(g.footer.blocklet, b)
	g.footer.index = append(g.footer.index, blockletIndex{})
}

// take notes the rows of the pages of the first chunk.
func (b *blockletInfo) take(cc columnChunk) {
	b.rows = 0
	for _, p := range cc.pages {
		b.inPage = append(b.inPage, int32(p.rows))
		b.rows += p.rows
	}
	b.pages = int32(len(cc.pages))
}

// chunkHere reads the metadata of a column chunk at an offset, if one is there with all its pages.
func (f *dataFile) chunkHere(ctx context.Context, at int64) (head int64, cc columnChunk, ok bool) {
	if at >= f.at.Len {
		return 0, cc, false
	}
	b, err := f.growing(ctx, at, "chunk", func(c *wire.Cursor) { cc = parseDataChunk3(thrift.NewReader(c, thrift.Compact), "") })
	if err != nil || len(cc.pages) == 0 || len(cc.lengths) != len(cc.pages) || len(cc.offsets) != len(cc.pages) {
		return 0, cc, false
	}
	end := at + int64(len(b))
	for i := range cc.pages {
		p := &cc.pages[i]
		if p.dataLen < 0 || p.rowidLen < 0 || p.rleLen < 0 || int64(p.dataLen)+int64(p.rowidLen)+int64(p.rleLen) != int64(cc.lengths[i]) ||
			at+int64(len(b))+int64(cc.offsets[i]) != end || p.rows < 0 || p.rows > maxPageRows3 {
			return 0, cc, false
		}
		end += int64(cc.lengths[i])
	}
	return int64(len(b)), cc, end <= f.at.Len
}
