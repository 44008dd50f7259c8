package cfile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/cfile/internal/write"
	"stoa/internal/arrowschema"
	"stoa/store"
)

// A table of several columns is a directory with a CFile for each column, and setFile, which lists them. Since version
// 2 it has structs; the fields of older ones are shown as columns under their dotted paths.

// maxSetFile is how many bytes a setFile may have.
const maxSetFile = 64 << 20

// perSetByte is the memory that each byte of a setFile is estimated to need: an empty column has three.
const perSetByte = 48

func inDir(tg format.Target, name string) string {
	if tg.Name == "" {
		return name
	}
	return strings.TrimSuffix(tg.Name, "/") + "/" + name
}

// readSet reads the setFile of a directory. If it is no file, or another program's although files beside it say that
// they are of a set, that is damage of the set.
func readSet(ctx context.Context, tg format.Target, l format.Limits) (fileSet, error) {
	t, err := parseSet(ctx, tg, l)
	var p *fs.PathError
	switch at := (fault.Span{Object: inDir(tg, setFile)}); {
	case err == nil || errors.Is(err, fs.ErrNotExist):
	case store.NoFile(err) && errors.As(err, &p):
		return t, fault.Corruptf(at, "", "no file can be opened by that name (%v): nothing says which files are "+
			"the table's, in which order, and of how many rows", p.Err)
	case errors.Is(err, fault.Invalid):
		if files, ferr := looseFiles(ctx, tg, l); ferr == nil && ofSet(files) > 0 {
			return t, fault.Corruptf(at, "", "it is not that of a set of CFiles, and files beside it are of one")
		}
	}
	return t, err
}

// parseSet parses a file with the setFile's name.
func parseSet(ctx context.Context, tg format.Target, l format.Limits) (t fileSet, err error) {
	name := inDir(tg, setFile)
	t.limits, t.name = l, name
	src, err := tg.Tree.Open(ctx, name)
	if err != nil {
		return t, err
	}
	defer src.Close()
	at := fault.Span{Object: name, Len: src.Size()}
	if at.Len > maxSetFile {
		return t, fault.Limitf(at, "", "%d bytes are more than a %s may have (%d)", at.Len, setFile, maxSetFile)
	}
	if err := l.Memory().Take(perSetByte*at.Len, at, ""); err != nil {
		return t, err
	}
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, src, at, "", b); err != nil {
		return t, err
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fault.Corruptf(at, "", "not the JSON of a set of CFiles: %v", err)
	}
	if err := l.FitSize(int64(len(t.Columns)), 0, at, "columns"); err != nil {
		return t, err
	}
	if err := t.check(at); err != nil {
		return t, err
	}
	return t, t.checkSum(b, at)
}

// check checks what was read. A setFile of another program is Invalid.
func (t *fileSet) check(at fault.Span) error {
	known := t.Version == 1 || t.Version == withStructs
	if t.Stoa != setKind && known && len(t.Schema) > 0 && len(t.Columns) > 0 && t.Columns[0].File != "" {
		return fault.Corruptf(at, "stoa", "%q instead of %q, and all else is that of a set of CFiles", t.Stoa, setKind)
	}
	if t.Stoa != setKind {
		return fault.New(fault.Invalid, at, "stoa", "not a set of CFiles: %q instead of %q", t.Stoa, setKind)
	}
	if !known {
		return fault.Unsupportedf(at, "version", "%d is not known", t.Version)
	}
	for i, c := range t.Columns {
		if !fs.ValidPath(c.File) || c.File == "." || c.File == setFile {
			return fault.Corruptf(at, fmt.Sprintf("columns[%d].file", i), "%q is no file of the directory", c.File)
		}
	}
	if t.Rows < 0 {
		return fault.Corruptf(at, "rows", "%d", t.Rows)
	}
	return nil
}

// probeDir looks for a setFile of ours or, where that is damaged or lost, for files with the names that our writer
// gives those of a table's columns.
func probeDir(ctx context.Context, tg format.Target) (format.Match, error) {
	t, err := readSet(ctx, tg, tg.Limits)
	switch {
	case t.Stoa == setKind:
		return format.Certain, nil
	case errors.Is(err, fs.ErrNotExist):
		// of one, too, if it is all there is: it is what is left of a table, and not all that the directory was
		if files, err := looseFiles(ctx, tg, tg.Limits); err == nil && (ofSet(files) > 1 ||
			ofSet(files) == 1 && len(files) == 1) {
			return format.Likely, nil
		}
		if onlyColumns(ctx, tg) {
			return format.Maybe, nil
		}
	case fault.OverBudget(err): // opening it says so
		if files, err := looseFiles(ctx, tg, tg.Limits); err == nil && len(files) > 0 {
			return format.Likely, nil
		}
	case columnfile.IsDamage(err):
		if files, err := looseFiles(ctx, tg, tg.Limits); err == nil &&
			slices.ContainsFunc(files, func(f looseFile) bool { return f.wellNamed() }) {
			return format.Likely, nil
		}
	}
	return format.No, ctx.Err()
}

// ofSet is how many of the files say that they belong to the same set.
func ofSet(files []looseFile) (most int) {
	n := map[string]int{}
	for _, f := range files {
		if f.set != "" {
			n[f.set]++
			most = max(most, n[f.set])
		}
	}
	return most
}

// onlyColumns reports whether a directory without a setFile holds nothing but several columns, of as many rows or each
// of a set.
func onlyColumns(ctx context.Context, tg format.Target) bool {
	n := 0
	for info, err := range tg.Tree.List(ctx, tg.Name) {
		if n++; err != nil || info.Dir || !strings.HasSuffix(info.Name, ".cfile") {
			return false
		}
	}
	if n < 2 {
		return false
	}
	files, err := looseFiles(ctx, tg, tg.Limits)
	if !slices.ContainsFunc(files, func(f looseFile) bool { return f.set == "" }) {
		return err == nil // each is of a set of its own, which had a setFile, as both had the table that was here
	}
	rows := int64(-1)
	for _, f := range files {
		if f.rows < 0 { // it cannot be read
			continue
		}
		if !f.wellNamed() || rows >= 0 && f.rows != rows {
			return false
		}
		rows = f.rows
	}
	return err == nil && rows >= 0
}

// leaves are the columns according to the schema that was written, one for each of Columns, in their order; none, and
// no error, if the set has no schema. A schema that cannot be parsed, or does not fit the columns, is an error.
func (t *fileSet) leaves() ([]write.Leaf, error) {
	if len(t.Schema) == 0 {
		return nil, nil
	}
	sc, err := arrowschema.DecodeWithin(t.Schema, t.limits, fault.Span{Object: t.name}, "schema")
	if fault.OverBudget(err) {
		return nil, err
	}
	if err != nil {
		return nil, fault.Rel(0, 0, "schema", "not an Arrow schema: %v", err)
	}
	all, err := write.LeavesOf(sc, t.Version >= withStructs)
	if err != nil {
		return nil, fault.Rel(0, 0, "schema", "no CFiles are of this schema: %v", err)
	}
	if len(all) != len(t.Columns) {
		return all, fault.Rel(0, 0, "columns", "%d, the schema has %d", len(t.Columns), len(all))
	}
	for i, l := range all {
		if l.Path != t.Columns[i].Path {
			return all, fault.Rel(0, 0, fmt.Sprintf("columns[%d].path", i), "%q, in the schema the column is %q",
				t.Columns[i].Path, l.Path)
		}
		if l.Validity != (t.Columns[i].Holds == block.HoldsValidity) {
			return all, fault.Rel(0, 0, fmt.Sprintf("columns[%d].holds", i),
				"%q, which is not what the schema has of %q", t.Columns[i].Holds, l.Path)
		}
		all[i].Col.Nullable = l.Col.Nullable && !t.Columns[i].Present
	}
	return all, nil
}

// belongs compares the file of column i with what the set says about the column: the type of the values and, in files
// by our writer, the column's name, digits and scale. l is nil if the set has no schema. The number of rows is compared
// elsewhere.
func (t *fileSet) belongs(f *columnfile.File, i int, l *write.Leaf) error {
	at, path := f.FootSpan(), t.Columns[i].Path
	s, known := f.Footer.Stored()
	if known && s.Name != "" && s.Name != path {
		return fault.Corruptf(at, "footer.metadata["+block.FieldKey+"]",
			"the file is of column %q, %s has it for column %q", s.Name, setFile, path)
	}
	if holds := t.Columns[i].Holds; known && s.Holds != holds {
		return fault.Corruptf(at, "footer.metadata["+block.FieldKey+"]",
			"the file holds %s, %s has it for the %s of %q", holdsWords(s.Holds), setFile, holdsWords(holds), path)
	}
	if t.Columns[i].Holds == block.HoldsValidity && f.Footer.Nullable {
		return fault.Corruptf(at, "footer.is_type_nullable", "the validity of %q has a place for nulls", path)
	}
	if l == nil {
		return nil
	}
	if f.Footer.Type != l.Col.Type || f.Footer.Array() != l.Col.Array {
		return fault.Corruptf(at, "footer.data_type", "the file holds %s values, %s says that column %q is %s",
			typeWords(f.Footer.Type, f.Footer.Array()), setFile, path, typeWords(l.Col.Type, l.Col.Array))
	}
	if known && (s.Precision != l.Col.Precision || s.Scale != l.Col.Scale) {
		return fault.Corruptf(at, "footer.metadata["+block.FieldKey+"]",
			"decimals of %d digits, %d after the decimal point; %s says %d and %d for column %q",
			s.Precision, s.Scale, setFile, l.Col.Precision, l.Col.Scale, path)
	}
	return nil
}

// sameSet compares the id in the file of column i with the set's. If the set has an id, a file without one belongs to
// another set.
func (t *fileSet) sameSet(f *columnfile.File, i int) error {
	b, known := f.Footer.Get(block.SetKey)
	id, at, path := string(b), f.FootSpan(), "footer.metadata["+block.SetKey+"]"
	switch n := t.Columns[i].Size; {
	case id == t.ID && n > 0 && n != f.At.Len:
		return fault.Corruptf(f.At, "", "%d bytes, %s has a file of %d for column %q: one is another table's",
			f.At.Len, setFile, n, t.Columns[i].Path)
	case id == t.ID:
		return nil
	case !known:
		return fault.Corruptf(at, path, "it is not there: the file of column %q was written by itself, or with "+
			"another table, not with the set %s of %s", t.Columns[i].Path, t.ID, setFile)
	case t.ID == "":
		return fault.Corruptf(at, path, "the file of column %q was written with the set %q, and %s is of "+
			"another, which has no id", t.Columns[i].Path, id, setFile)
	}
	return fault.Corruptf(at, path, "the file of column %q was written with the set %q, %s with %q: they are of "+
		"different tables", t.Columns[i].Path, id, setFile, t.ID)
}

func holdsWords(holds string) string {
	if holds == "" {
		return "values"
	}
	return holds
}

func typeWords(t block.Type, array bool) string {
	if array {
		return t.String() + " array"
	}
	return t.String()
}

// leafAt is leaf i; nil if the set's schema is not known.
func leafAt(leaves []write.Leaf, i int) *write.Leaf {
	if i >= len(leaves) {
		return nil
	}
	return &leaves[i]
}

// arrowSchema is the schema that was written; nil if it cannot be parsed, as the files have their types, too.
func (t *fileSet) arrowSchema() *arrow.Schema {
	sc, err := arrowschema.DecodeWithin(t.Schema, t.limits, fault.Span{Object: t.name}, "schema")
	if err != nil {
		return nil
	}
	return sc
}

// openDir opens a directory as one table, whose columns are its files.
func openDir(ctx context.Context, tg format.Target, o format.OpenOptions,
	opts columnfile.ReadOptions) (format.Reader, error) {
	o.Limits = o.Limits.Together()
	set, err := readSet(ctx, tg, o.Limits)
	if errors.Is(err, fs.ErrNotExist) {
		err = noSet(tg)
	}
	if err != nil {
		return nil, err
	}
	t := &table{name: tg.Name, rows: set.Rows, stamp: set.stamp(ctx, tg)}
	leaves, err := set.leaves()
	if err != nil {
		return nil, setDamage(tg, err)
	}
	for i, c := range set.Columns {
		f, err := openColumnFile(ctx, tg, c, o)
		if err != nil {
			t.Close()
			return nil, err
		}
		t.files = append(t.files, &tableFile{File: f, name: c.Path})
		t.bytes += f.At.Len
		if f.Footer.NumValues != t.rows {
			t.Close()
			return nil, unevenRows(t, set, f)
		}
		if err := set.belongs(f, i, leafAt(leaves, i)); err != nil {
			t.Close()
			return nil, err
		}
		if err := set.sameSet(f, i); err != nil {
			t.Close()
			return nil, err
		}
	}
	t.Finish(set, leaves, opts)
	return t, nil
}

// stamp is the stamp of the setFile, and a digest of the names, sizes and stamps of the columns' files; none if the
// tree has none.
func (t *fileSet) stamp(ctx context.Context, tg format.Target) string {
	own := stampOf(ctx, format.Target{Tree: tg.Tree, Name: inDir(tg, setFile)})
	if own == "" {
		return ""
	}
	h := sha256.New()
	for _, c := range t.Columns {
		info, _ := tg.Tree.Stat(ctx, inDir(tg, c.File)) // one that is not there is told where it is opened
		fmt.Fprintf(h, "%q %d %q\n", c.File, info.Size, info.Stamp)
	}
	return fmt.Sprintf("%s-%x", own, h.Sum(nil)[:16])
}

// setDamage is the error of damage in the setFile of a directory.
func setDamage(tg format.Target, err error) error {
	return fault.Locate(err, fault.Span{Object: inDir(tg, setFile)}, true, "")
}

// openColumnFile opens the file of a column of a set. If it does not exist, that is damage of the set.
func openColumnFile(ctx context.Context, tg format.Target, c setColumn, o format.OpenOptions) (*columnfile.File,
	error) {
	name := inDir(tg, c.File)
	f, err := openTarget(ctx, format.Target{Tree: tg.Tree, Name: name}, o)
	if errors.Is(err, fs.ErrNotExist) {
		err = missing(name, c)
	}
	return f, err
}

// noSet is the error of a directory without a setFile.
func noSet(tg format.Target) error {
	return fault.Corruptf(fault.Span{Object: inDir(tg, setFile)}, "",
		"it is not there: nothing says which files are the table's, in which order, and of how many rows")
}

// missing is the error of a missing file of column c.
func missing(name string, c setColumn) error {
	return fault.Corruptf(fault.Span{Object: name}, "", "the file of column %q is not there, but %s names it",
		c.Path, setFile)
}

// Finish makes the schema and facts of the open files of a set. leaves are their columns; nil: not known.
func (t *table) Finish(set fileSet, leaves []write.Leaf, o columnfile.ReadOptions) {
	sc := set.arrowSchema()
	var meta *arrow.Metadata
	if sc != nil {
		m := sc.Metadata()
		meta = &m
	}
	own := func(i int, name string) arrow.Field {
		o.Name = name
		return t.files[i].Field(o)
	}
	var names []string
	t.meta = []format.KeyValue{{Key: "format", Value: "directory of CFiles"}, {Key: "kind", Value: "table"},
		{Key: "rows", Value: fmt.Sprint(t.rows)}, {Key: "columns", Value: fmt.Sprint(len(t.files))}}
	for i, f := range t.files {
		names = append(names, f.name)
		t.meta = append(t.meta, format.KeyValue{Key: "column." + f.name, Value: fmt.Sprintf("%s: %s, %s, %s, %d bytes",
			set.Columns[i].File, f.Footer.Type, f.Footer.Encoding, f.Footer.Compression, f.At.Len)})
	}
	var s *shape
	if set.Version >= withStructs && sc != nil && len(leaves) == len(t.files) {
		s = nestedShape(sc, leaves, own)
	} else {
		s = flatShape(sc, names, own)
	}
	for i, p := range s.places {
		t.files[i].place = p
	}
	t.sc, t.stored = arrow.NewSchema(s.shown, meta), arrow.NewSchema(s.stored, meta)
}

// unevenRows is the error that f, the last file of t, has another number of rows than the table, and than the file
// before it.
func unevenRows(t *table, set fileSet, f *columnfile.File) error {
	other, n := setFile, set.Rows
	if len(t.files) > 1 {
		before := t.files[len(t.files)-2]
		other, n = before.At.Object, before.Footer.NumValues
	}
	return fault.Corruptf(f.FootSpan(), "footer.num_values", "%s has %d rows, %s has %d", f.At.Object,
		f.Footer.NumValues, other, n)
}
