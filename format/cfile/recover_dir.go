package cfile

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/cfile/internal/write"
	"stoa/region"
)

// setRecovery recovers the table in a directory. The cells in unreadable parts of a column, and those of columns whose
// file belongs to another table, are lost; the other columns are read.
type setRecovery struct {
	ctx    context.Context
	tg     format.Target
	o      format.OpenOptions
	set    fileSet
	leaves []write.Leaf // nil: the schema is not known
	t      *table
	lost   []error // why a column is lost; nil: it is read
	found  []region.Finding
	torn   []string // columns by what is left of a setFile whose JSON is damaged; nil: not known
}

// recoverDir implements format.Format.Recover for directories.
func recoverDir(ctx context.Context, tg format.Target, o format.OpenOptions,
	opts columnfile.ReadOptions) (format.Reader, []region.Finding, error) {
	o.Limits = o.Limits.Together()
	r := &setRecovery{ctx: ctx, tg: tg, o: o, t: &table{name: tg.Name}}
	fields, err := opts.SchemaColumns(ctx, tg)
	if err == nil {
		err = r.readSet()
	}
	if err != nil {
		return nil, r.found, err
	}
	for i := range r.set.Columns {
		if err := r.column(i, fields, opts); err != nil {
			r.t.Close()
			return nil, r.found, err
		}
	}
	r.t.unread = r.set.unread(ctx, tg, r.o.Limits)
	if err := r.Finish(opts); err != nil {
		r.t.Close()
		return nil, r.found, err
	}
	return r.t, r.found, nil
}

// damaged reports damage of the set; lost is the number of lost cells of column, -1 if unknown.
func (r *setRecovery) damaged(err error, column string, rows [2]int64, lost int64) {
	f := block.Codes.Of("cfile.set", err, r.tg.Name)
	if f.At.Object == "" {
		f.At.Object = inDir(r.tg, setFile)
	}
	f.Column, f.Rows, f.Lost = column, rows, lost
	r.found = append(r.found, f)
}

// readSet reads the setFile. Damaged parts are reconstructed from its schema or else from the files. An error is either
// not about damage, or means that nothing of the table is left.
func (r *setRecovery) readSet() error {
	set, err := readSet(r.ctx, r.tg, r.o.Limits)
	if err == nil || set.unproven {
		checksum := err
		r.set = set
		if r.leaves, err = set.leaves(); err == nil {
			if checksum != nil {
				r.damaged(checksum, "", [2]int64{-1, -1}, 0)
			}
			r.fixFileNames()
			return nil
		}
		err = setDamage(r.tg, err)
		if r.otherVersion() {
			r.damaged(err, "", [2]int64{-1, -1}, 0)
			return nil
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = noSet(r.tg)
	} else if !columnfile.IsDamage(err) && !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Unsupported) {
		return err
	}
	// If the schema and the list of columns contradict each other, the one whose files exist is used.
	var named []setColumn
	for i, name := range fileNames(r.leaves) {
		one := setColumn{Path: r.leaves[i].Path, File: name}
		if r.leaves[i].Validity {
			one.Holds = block.HoldsValidity
		}
		named = append(named, one)
	}
	if r.allExist(named) {
		r.set.Columns = named
		r.damaged(err, "", [2]int64{-1, -1}, 0)
		return nil
	}
	if r.leaves = nil; r.allExist(r.set.Columns) {
		r.damaged(err, "", [2]int64{-1, -1}, 0)
		return nil
	}
	r.damaged(err, "", [2]int64{-1, -1}, -1)
	r.set = fileSet{Rows: -1}
	r.set.ID, r.torn = tornSet(r.ctx, r.tg, r.o.Limits)
	files, ferr := looseFiles(r.ctx, r.tg, r.o.Limits)
	for _, f := range files {
		r.set.Columns = append(r.set.Columns, f.setColumn)
	}
	if ferr == nil && len(files) == 0 {
		return err
	}
	return ferr
}

// Members of a setFile that are complete although its JSON is damaged behind them.
var (
	setID      = regexp.MustCompile(`"id":\s*"([0-9a-f]{32})"`)
	setVersion = regexp.MustCompile(`"version":\s*([12]),`)
	setSchema  = regexp.MustCompile(`"schema":\s*"([A-Za-z0-9+/]+=*)"`)
)

// tornSet returns what is left of a setFile whose JSON is damaged: the id, "" if it is lost as well, and the paths of
// the columns that its schema has, nil if that is lost. Values of the set are not taken from it: no checksum proves it.
func tornSet(ctx context.Context, tg format.Target, l format.Limits) (id string, columns []string) {
	src, err := tg.Tree.Open(ctx, inDir(tg, setFile))
	if err != nil {
		return "", nil
	}
	defer src.Close()
	at := fault.Span{Object: inDir(tg, setFile), Len: min(src.Size(), maxSetFile)}
	if l.Memory().Take(at.Len, at, "") != nil {
		at.Len = min(at.Len, 4<<10)
	}
	b := make([]byte, at.Len)
	if format.ReadFull(ctx, src, at, "", b) != nil {
		return "", nil
	}
	if m := setID.FindSubmatch(b[:min(len(b), 4<<10)]); m != nil {
		id = string(m[1])
	}
	set := fileSet{limits: l, name: at.Object, Version: 1}
	if m := setVersion.FindSubmatch(b); m != nil {
		set.Version = int(m[1][0] - '0')
	}
	if m := setSchema.FindSubmatch(b); m != nil {
		set.Schema, _ = base64.StdEncoding.DecodeString(string(m[1]))
	}
	leaves, _ := set.leaves() // that they do not match the list of columns is no surprise
	for _, leaf := range leaves {
		columns = append(columns, leaf.Path)
	}
	return id, columns
}

// otherVersion reports whether the schema would fit the columns if the set had the other version number, and if so sets
// it.
func (r *setRecovery) otherVersion() bool {
	other := r.set
	other.Version = 1 + withStructs - other.Version
	leaves, err := other.leaves()
	if err == nil && leaves != nil {
		r.set, r.leaves = other, leaves
	}
	return err == nil && leaves != nil
}

// fixFileNames repairs the file names of columns: where the file does not exist or is another column's as well, the
// name that our writer would have chosen is used, provided that a file of that name exists.
func (r *setRecovery) fixFileNames() {
	names := fileNames(r.leaves)
	if len(names) != len(r.set.Columns) { // the set has no schema
		return
	}
	used := map[string]int{}
	for _, c := range r.set.Columns {
		used[c.File]++
	}
	r.set.Columns = slices.Clone(r.set.Columns)
	for i, c := range r.set.Columns {
		if c.File == names[i] || used[c.File] == 1 && r.allExist([]setColumn{c}) || used[names[i]] > 0 ||
			!r.allExist([]setColumn{{Path: c.Path, File: names[i]}}) {
			continue
		}
		r.set.Columns[i].File = names[i]
		r.damaged(fault.Corruptf(fault.Span{Object: inDir(r.tg, setFile)}, fmt.Sprintf("columns[%d].file", i),
			"%q, but the column's file is %q", c.File, names[i]), "", [2]int64{-1, -1}, 0)
	}
}

// allExist reports whether there is at least one column, and the files of all of them exist.
func (r *setRecovery) allExist(columns []setColumn) bool {
	for _, c := range columns {
		if _, err := r.tg.Tree.Stat(r.ctx, inDir(r.tg, c.File)); err != nil {
			return false
		}
	}
	return len(columns) > 0
}

// column recovers column i. It returns only errors that are not damage.
func (r *setRecovery) column(i int, fields map[string]format.SchemaField, opts columnfile.ReadOptions) (err error) {
	c, l := r.set.Columns[i], leafAt(r.leaves, i)
	if f, ok := fields[c.Path]; ok {
		if opts, err = opts.With(f, c.Path); err != nil {
			return err
		}
	} else if opts.Typ < 0 && l != nil {
		opts.Typ, opts.Array = l.Col.Type, l.Col.Array
		if !opts.NullableSet {
			opts.Nullable, opts.NullableSet = l.Col.Nullable, true
		}
	}
	name := inDir(r.tg, c.File)
	f, blocks, found, err := recoverFile(r.ctx, format.Target{Tree: r.tg.Tree, Name: name}, r.o, opts,
		r.set.Rows)
	for _, x := range found {
		x.Column = c.Path
		r.found = append(r.found, x)
	}
	if isMissing(err) {
		err = missing(name, c)
	}
	// the footer was read in spite of a wrong checksum; the numbers of the two types differ in one bit, and both are
	// stored alike
	if err == nil && len(found) > 0 && f.Footer.Type == block.Binary && opts.Typ == block.String {
		f.Footer.Type = block.String
	}
	if err == nil {
		r.ownName(i, f)
		c = r.set.Columns[i]
		if !f.Unproven && r.set.namesNone(f, i) {
			f.Unproven = true
			r.damaged(fault.Corruptf(f.FootSpan(), "footer.metadata["+block.FieldKey+"]", "it states no column"),
				c.Path, [2]int64{-1, -1}, 0)
		}
		err = r.set.checkColumn(f, i, l)
	}
	if k := slices.IndexFunc(r.set.Columns[:i], func(x setColumn) bool { return x.Path == c.Path }); err == nil &&
		k >= 0 && r.lost[k] == nil && r.leaves == nil {
		first := r.set.Columns[k].File
		name := columnByFile(c.File)
		err = fault.Corruptf(f.FootSpan(), "", "the file is of column %q, and so is %s: column %q, after which the "+
			"file is named, is lost", c.Path, first, name)
		c.Path = name
	}
	r.t.files = append(r.t.files, &tableFile{File: f, name: c.Path, found: blocks})
	r.lost = append(r.lost, err)
	if errors.Is(err, fault.Bug) || fault.OverBudget(err) {
		return err
	}
	return r.ctx.Err()
}

// ownName gives column i the name that its file says, if the setFile is damaged and its schema, which has the names
// again, is lost: the two differ, and the file's is the one that no damage is known of.
func (r *setRecovery) ownName(i int, f *columnfile.File) {
	s, known := f.Footer.Stored()
	path := r.set.Columns[i].Path
	if !known || s.Name == "" || s.Name == path || r.leaves != nil || !r.set.unproven || !f.CountKnown() ||
		slices.ContainsFunc(r.set.Columns, func(c setColumn) bool { return c.Path == s.Name }) {
		return
	}
	r.set.Columns = slices.Clone(r.set.Columns)
	r.set.Columns[i].Path = s.Name
	r.damaged(fault.Corruptf(fault.Span{Object: inDir(r.tg, setFile)}, fmt.Sprintf("columns[%d].path", i),
		"%q, but the column's file says %q", path, s.Name), "", [2]int64{-1, -1}, 0)
}

// countRows determines the number of rows of the table: the number that most files have, with ties decided by the
// setFile. If no file has a known number, it is the setFile's, or else the highest number found.
func (r *setRecovery) countRows() int64 {
	votes, best := map[int64]int{}, r.set.Rows
	for i, f := range r.t.files {
		if r.lost[i] == nil && f.CountKnown() {
			votes[f.Footer.NumValues]++
		}
	}
	maxVotes := 0
	for i, f := range r.t.files {
		if r.lost[i] != nil || !f.CountKnown() {
			continue
		}
		if n := f.Footer.NumValues; votes[n] > maxVotes || votes[n] == maxVotes && n == r.set.Rows {
			maxVotes, best = votes[n], n
		}
	}
	if maxVotes > 0 {
		return best
	}
	for i, f := range r.t.files { // no file has a footer
		if r.lost[i] == nil && r.set.Rows < 0 {
			best = max(best, f.Footer.NumValues)
		}
	}
	return best
}

// oneSet marks columns whose files belong to other sets as lost. The table's set is the one to which most files belong;
// ties are decided by the setFile's id. The setFile counts as one vote itself if the id of some file cannot be read.
// The error is Corrupt if two sets have equally many files and no setFile decides between them.
func (r *setRecovery) oneSet() error {
	votes, maxVotes, best := map[string]int{}, 0, r.set.ID
	for i, f := range r.t.files {
		if maxVotes == 0 && r.set.Rows >= 0 && (r.lost[i] != nil || !f.CountKnown()) {
			votes[best], maxVotes = 1, 1
		}
	}
	for i, f := range r.t.files {
		if r.lost[i] != nil || !f.CountKnown() {
			continue
		}
		b, _ := f.Footer.Get(block.SetKey)
		id := string(b)
		votes[id]++
		if n := votes[id]; n > maxVotes || n == maxVotes && id == r.set.ID {
			maxVotes, best = n, id
		}
	}
	if err := r.tie(votes, best); err != nil {
		return err
	}
	if best != r.set.ID && r.set.Rows >= 0 {
		r.damaged(fault.Corruptf(fault.Span{Object: inDir(r.tg, setFile)}, "id",
			"%q, but most files were written with the set %q", r.set.ID, best), "", [2]int64{-1, -1}, 0)
	}
	otherSet := r.set.ID != best
	r.set.ID = best
	for i, f := range r.t.files {
		if r.lost[i] != nil {
			continue
		}
		id, _ := f.Footer.Get(block.SetKey)
		other := isOtherID(string(id), best)
		switch {
		case f.CountKnown(), other && len(r.set.Columns[i].Marks) == 0:
			r.lost[i] = r.set.checkID(f.File, i)
		case other, len(id) == 0: // a damaged footer does not prove it
			r.lost[i] = r.dropForeignBlocks(i, otherSet)
		}
		if r.lost[i] == nil && f.Unproven && !otherSet && id != nil && !other { // it may be that of another column
			r.lost[i] = r.dropForeignBlocks(i, false)
		}
	}
	return nil
}

// tie returns a Corrupt error if another set has as many votes as best and no id in the setFile decides between them.
func (r *setRecovery) tie(votes map[string]int, best string) error {
	if r.set.Rows >= 0 || r.set.ID != "" && best == r.set.ID {
		return nil
	}
	var tied []string
	for i, f := range r.t.files {
		if r.lost[i] != nil || !f.CountKnown() {
			continue
		}
		if b, _ := f.Footer.Get(block.SetKey); votes[string(b)] == votes[best] {
			tied = append(tied, fmt.Sprintf("%s to %q", r.set.Columns[i].File, b))
		}
	}
	if len(tied) <= votes[best] {
		return nil
	}
	return fault.Corruptf(fault.Span{Object: inDir(r.tg, setFile)}, "id", "it is lost, and as many files belong to "+
		"one table as to another: %s; put those of the other table elsewhere, or recover each file by itself",
		strings.Join(tied, ", "))
}

// isOtherID reports whether id, read from a damaged footer, may be the id of another set: more than half of its bytes
// differ.
func isOtherID(id, set string) bool {
	differ := 0
	for i := range min(len(id), len(set)) {
		if id[i] != set[i] {
			differ++
		}
	}
	return differ > len(set)/2
}

// dropForeignBlocks handles the file of column i, whose footer is lost or damaged: blocks count as lost unless the
// marks in the setFile prove that they are the column's. That they can be decoded proves nothing, as blocks of another
// column may hold values of the same size. otherSet means that the marks are of another set than the files. The error
// is Corrupt if no block is the column's.
func (r *setRecovery) dropForeignBlocks(i int, otherSet bool) error {
	f, marks := r.t.files[i], r.set.Columns[i].Marks
	if len(marks) > 0 && f.found == nil && f.Footer.PosIdx != nil {
		silent := reporter(r.ctx, f.At.Object, func(region.Finding) bool { return false })
		whole := &recovery{Reporter: silent, ctx: r.ctx, f: f.File}
		if whole.walk(f.Positions()) {
			f.found = whole.known
		}
	}
	if len(marks) == 0 || f.found == nil {
		return nil
	}
	var whole []fault.Span
	if !otherSet {
		var err error
		if whole, err = f.intactRanges(r.ctx, marks); err != nil {
			return err
		}
	}
	isIntact := func(p block.BlockPtr) bool {
		return slices.ContainsFunc(whole, func(s fault.Span) bool {
			return s.Off <= p.Offset && p.Offset+p.Size <= s.End()
		})
	}
	dictIntact := f.Footer.Dict == nil || isIntact(*f.Footer.Dict)
	var unproven []int
	proven := 0
	for k, b := range f.found {
		switch {
		case b.Lost != nil:
		case dictIntact && isIntact(b.Ptr):
			proven++
		default:
			unproven = append(unproven, k)
		}
	}
	if proven == 0 && len(unproven) > 0 {
		return fault.Corruptf(f.At, "", "the footer is damaged, and no block matches the marks that %s has of the "+
			"file of column %q: it may be another column's, or another table's", setFile, r.set.Columns[i].Path)
	}
	for _, k := range unproven {
		r.loseUncertain(f, &f.found[k])
	}
	return nil
}

// loseUncertain treats a block as lost because it may belong to another column or table.
func (r *setRecovery) loseUncertain(f *tableFile, b *columnfile.DataBlock) {
	b.Lost = fault.Corruptf(f.Span(b.Ptr), "", "the file's footer is damaged, and the block does not match the marks "+
		"of %s: it is damaged, or another column's", setFile)
	x := block.Codes.Of("cfile.rows.lost", b.Lost, f.At.Object)
	x.Column, x.Rows, x.Lost = f.name, [2]int64{b.First, b.First + b.Rows}, b.Rows
	r.found = append(r.found, x)
}

// Finish makes a table of the columns, all with the same number of rows. If no column can be read, it returns the error
// of the first.
func (r *setRecovery) Finish(opts columnfile.ReadOptions) error {
	if err := r.oneSet(); err != nil {
		return err
	}
	r.t.rows = r.countRows()
	if n := r.set.Rows; n >= 0 && n == r.t.rows {
		r.t.declared, r.t.by = &n, inDir(r.tg, setFile)
	} else if n >= 0 {
		r.damaged(fault.Corruptf(fault.Span{Object: inDir(r.tg, setFile)}, "rows", "%d, but the files have %d", n,
			r.t.rows), "", [2]int64{-1, -1}, max(0, n-r.t.rows))
	}
	var first error
	readable := 0
	for i, f := range r.t.files {
		if n := int64(0); r.lost[i] == nil {
			if n = f.Footer.NumValues; n > r.t.rows || n < r.t.rows && f.CountKnown() {
				r.lost[i] = fault.Corruptf(f.FootSpan(), "footer.num_values", "%s, the table has %d",
					fault.Count(n, "row"), r.t.rows)
			} else if n < r.t.rows {
				r.loseTail(f, n)
			}
		}
		if r.lost[i] == nil {
			readable++
			continue
		}
		first = cmp.Or(first, r.lost[i])
		r.rename(i, r.otherName(i))
		r.damaged(r.lost[i], f.name, [2]int64{0, max(r.t.rows, 0)}, max(r.t.rows, 0))
		r.loseColumn(i)
		r.found[len(r.found)-1].Gone = f.File == nil
	}
	if readable == 0 && first != nil {
		return first
	}
	r.dropUnreadable()
	r.missTorn()
	if r.leaves == nil {
		r.set.Schema = nil
	}
	r.t.bytes = 0
	for _, f := range r.t.files {
		r.t.bytes += f.At.Len
	}
	r.t.Finish(r.set, r.leaves, opts)
	return nil
}

// rename gives column i another name, also in what was found of its file.
func (r *setRecovery) rename(i int, name string) {
	f, object := r.t.files[i], inDir(r.tg, r.set.Columns[i].File)
	for k := range r.found {
		if x := &r.found[k]; x.At.Object == object && x.Column == f.name {
			x.Column = name
		}
	}
	f.name = name
}

// otherName returns the name of a column that cannot be read. If its file is named after a column that is read from
// another file, it is the column of which there is no other file, or else the name of the file.
func (r *setRecovery) otherName(i int) string {
	isRead := func(name string) bool {
		for k, f := range r.t.files {
			if k != i && r.lost[k] == nil && f.name == name {
				return true
			}
		}
		return false
	}
	if r.leaves != nil || !isRead(r.t.files[i].name) {
		return r.t.files[i].name
	}
	var left []string
	for _, path := range r.torn {
		if !isRead(path) {
			left = append(left, path)
		}
	}
	if len(left) == 1 {
		return left[0]
	}
	return r.set.Columns[i].File
}

// loseTail reports the rows of a column from n on as lost: its footer is lost, and the last block found ends at n.
func (r *setRecovery) loseTail(f *tableFile, n int64) {
	at := f.At.Sub(f.At.Len, 0)
	err := fault.Corruptf(at, "", "the blocks of rows %d to %d were not found", n, r.t.rows)
	x := block.Codes.Of("cfile.rows.lost", err, f.At.Object)
	x.Column, x.Rows, x.Lost = f.name, [2]int64{n, r.t.rows}, r.t.rows-n
	r.found = append(r.found, x)
	f.found = append(f.found, columnfile.DataBlock{Ptr: block.BlockPtr{Offset: f.At.Len, Size: 0}, First: n,
		Rows: r.t.rows - n, Lost: err})
	f.Footer.NumValues = r.t.rows
}

// loseColumn replaces column i, which cannot be read, by a column of lost cells. Without a schema its type is unknown
// and its file becomes nil, see dropUnreadable.
func (r *setRecovery) loseColumn(i int) {
	f := r.t.files[i]
	if f.File != nil && f.Src != nil {
		f.Src.Close()
	}
	l := leafAt(r.leaves, i)
	if l == nil {
		f.File = nil
		return
	}
	foot := block.Footer{Type: l.Col.Type, Encoding: block.Plain, Compression: block.NoCompression,
		Nullable: l.Col.Nullable, NumValues: r.t.rows}
	if l.Col.Array {
		foot.Incompatible = block.FeatureArrayBlocks
	}
	f.File = &columnfile.File{At: fault.Span{Object: inDir(r.tg, r.set.Columns[i].File)}, Footer: foot,
		Limits: r.o.Limits.WithDefaults()}
	f.found = []columnfile.DataBlock{}
	if r.t.rows > 0 {
		f.found = []columnfile.DataBlock{{Rows: r.t.rows, Lost: r.lost[i]}}
	}
}

// dropUnreadable removes the columns whose file is nil.
func (r *setRecovery) dropUnreadable() {
	var files []*tableFile
	var columns []setColumn
	for i, f := range r.t.files {
		if f.File != nil {
			files, columns = append(files, f), append(columns, r.set.Columns[i])
		}
	}
	r.t.files, r.set.Columns = files, columns
}

// missTorn reports the columns that a damaged setFile still names, and of which no file is left.
func (r *setRecovery) missTorn() {
	for _, path := range r.torn {
		if slices.ContainsFunc(r.set.Columns, func(c setColumn) bool { return c.Path == path }) ||
			slices.ContainsFunc(r.found, func(f region.Finding) bool { return f.Column == path && f.Lost != 0 }) {
			continue
		}
		rows := max(r.t.rows, 0)
		r.damaged(fault.Corruptf(fault.Span{Object: inDir(r.tg, setFile)}, "schema", "column %q is lost: none of the "+
			"files is that of this column", path), path, [2]int64{0, rows}, rows)
		r.found[len(r.found)-1].Gone = true
	}
}
