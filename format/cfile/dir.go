package cfile

import (
	"bytes"
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

// A table of several columns is a directory with one CFile per column and setFile, which lists them. Structs are stored
// as structs from version 2 of setFile on; in version 1 their fields are columns named by their dotted paths.

// maxSetFile is the largest size of a setFile in bytes.
const maxSetFile = 64 << 20

// perSetByte is the memory in bytes that each byte of a setFile is estimated to need: the JSON of a column may be as
// short as three bytes, `{},`, and still produces a whole setColumn.
const perSetByte = 48

// inDir is the name of an object in the directory tg.
func inDir(tg format.Target, name string) string {
	if tg.Name == "" {
		return name
	}
	return strings.TrimSuffix(tg.Name, "/") + "/" + name
}

// readSet reads the setFile of a directory. It returns Corrupt if setFile is not a regular file, or if it was written
// by another program although files beside it belong to a set: then the set is damaged. If there is no setFile the
// error is fs.ErrNotExist.
func readSet(ctx context.Context, tg format.Target, l format.Limits) (fileSet, error) {
	t, err := parseSet(ctx, tg, l)
	var p *fs.PathError
	switch at := (fault.Span{Object: inDir(tg, setFile)}); {
	case err == nil || errors.Is(err, fs.ErrNotExist):
	case store.NoFile(err) && errors.As(err, &p):
		return t, fault.Corruptf(at, "", "no file can be opened by that name (%v): %s", p.Err, unknownTable)
	case errors.Is(err, fault.Invalid):
		if files, ferr := looseFiles(ctx, tg, l); ferr == nil && largestSet(files) > 0 {
			return t, fault.Corruptf(at, "", "not that of a set of CFiles, but files beside it belong to one")
		}
	}
	return t, err
}

// parseSet parses a file with the setFile's name. Its error is Corrupt, Unsupported (unknown version), Limit, or
// Invalid (another program's file).
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
		return t, fault.Limitf(at, "", "%d bytes, at most %d are allowed for %s", at.Len, maxSetFile, setFile)
	}
	if err := l.Memory().Take(perSetByte*at.Len, at, ""); err != nil {
		return t, err
	}
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, src, at, "", b); err != nil {
		return t, err
	}
	if err := json.Unmarshal(b, &t); err != nil {
		if bytes.Contains(b[:min(len(b), 4<<10)], []byte(`"`+setKind+`"`)) {
			t.Stoa = setKind // the rest of the file is lost
		}
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

// check checks kind, version, file names and number of rows. A setFile written by another program is Invalid.
func (t *fileSet) check(at fault.Span) error {
	known := t.Version == 1 || t.Version == withStructs
	if t.Stoa != setKind && known && len(t.Schema) > 0 && len(t.Columns) > 0 && t.Columns[0].File != "" {
		return fault.Corruptf(at, "stoa", "expected %q, found %q, and the rest is that of a set of CFiles", setKind,
			t.Stoa)
	}
	if t.Stoa != setKind {
		return fault.New(fault.Invalid, at, "stoa", "not a set of CFiles: expected %q, found %q", setKind, t.Stoa)
	}
	if !known {
		return fault.Unsupportedf(at, "version", "expected a version of at most %d, found %d", withStructs, t.Version)
	}
	for i, c := range t.Columns {
		if !fs.ValidPath(c.File) || c.File == "." || c.File == setFile {
			return fault.Corruptf(at, fmt.Sprintf("columns[%d].file", i), "%q cannot be a file of the directory",
				c.File)
		}
	}
	if t.Rows < 0 {
		return fault.Corruptf(at, "rows", "expected at least 0, found %d", t.Rows)
	}
	return nil
}

// probeDir implements format.Format.Probe for directories: Certain if setFile is ours, Likely or Maybe if setFile is
// damaged or missing but files are named as our writer names columns.
func probeDir(ctx context.Context, tg format.Target) (format.Match, error) {
	t, err := readSet(ctx, tg, tg.Limits)
	switch {
	case t.Stoa == setKind:
		return format.Certain, nil
	case errors.Is(err, fs.ErrNotExist):
		// one file of a set suffices if it is the only file: it is all that is left of a table
		if files, err := looseFiles(ctx, tg, tg.Limits); err == nil && (largestSet(files) > 1 ||
			largestSet(files) == 1 && len(files) == 1) {
			return format.Likely, nil
		}
		if onlyColumns(ctx, tg) {
			return format.Maybe, nil
		}
	case fault.OverBudget(err): // Open reports it
		if files, err := looseFiles(ctx, tg, tg.Limits); err == nil && len(files) > 0 {
			return format.Likely, nil
		}
	case columnfile.IsDamage(err):
		if files, err := looseFiles(ctx, tg, tg.Limits); err == nil && (largestSet(files) > 0 ||
			slices.ContainsFunc(files, func(f looseFile) bool { return f.wellNamed() })) {
			return format.Likely, nil
		}
	}
	return format.No, ctx.Err()
}

// largestSet returns the number of files that share the most common set id.
func largestSet(files []looseFile) (size int) {
	n := map[string]int{}
	for _, f := range files {
		if f.set != "" {
			n[f.set]++
			size = max(size, n[f.set])
		}
	}
	return size
}

// onlyColumns reports whether a directory without a setFile holds at least two column files and nothing else, where
// every file has a set id or all have the same number of rows.
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
		return err == nil // each has a set id, so it was written beside a setFile
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

// leaves returns the columns of the stored schema, one for each of Columns and in the same order. Without a schema it
// returns nil and no error. A schema that cannot be parsed, or that does not match the columns, is an error.
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
		return nil, fault.Rel(0, 0, "schema", "not one that CFiles can have: %v", err)
	}
	if len(all) != len(t.Columns) {
		return all, fault.Rel(0, 0, "columns", "%s, the schema has %d", fault.Count(len(t.Columns), "column"), len(all))
	}
	for i, l := range all {
		if l.Path != t.Columns[i].Path {
			return all, fault.Rel(0, 0, fmt.Sprintf("columns[%d].path", i), "%q, in the schema the column is %q",
				t.Columns[i].Path, l.Path)
		}
		if l.Validity != (t.Columns[i].Holds == block.HoldsValidity) {
			return all, fault.Rel(0, 0, fmt.Sprintf("columns[%d].holds", i),
				"%q, the schema expects something else of column %q", t.Columns[i].Holds, l.Path)
		}
		all[i].Col.Nullable = l.Col.Nullable && !t.Columns[i].Present
	}
	return all, nil
}

// checkColumn compares the file of column i with the set: the type of the values and, in files of our writer, the
// column's name, precision and scale. l is nil if the set has no schema. The number of rows is compared by the caller.
// Its error is Corrupt.
func (t *fileSet) checkColumn(f *columnfile.File, i int, l *write.Leaf) error {
	at, path := f.FootSpan(), t.Columns[i].Path
	s, known := f.Footer.Stored()
	if known && s.Name != "" && s.Name != path {
		return fault.Corruptf(at, "footer.metadata["+block.FieldKey+"]",
			"expected the file of column %q by %s, found that of %q", path, setFile, s.Name)
	}
	if !f.Unproven && t.namesNone(f, i) {
		return fault.Corruptf(at, "footer.metadata["+block.FieldKey+"]",
			"expected the file of column %q by %s, found one that states no column", path, setFile)
	}
	if holds := t.Columns[i].Holds; known && s.Holds != holds {
		return fault.Corruptf(at, "footer.metadata["+block.FieldKey+"]",
			"expected the %s of %q by %s, found %s", holdsName(holds), path, setFile, holdsName(s.Holds))
	}
	if t.Columns[i].Holds == block.HoldsValidity && f.Footer.Nullable {
		return fault.Corruptf(at, "footer.is_type_nullable", "the validity of %q is nullable", path)
	}
	if l == nil {
		return nil
	}
	if f.Footer.Type != l.Col.Type || f.Footer.Array() != l.Col.Array {
		return fault.Corruptf(at, "footer.data_type", "expected %s values of column %q by %s, found %s",
			typeName(l.Col.Type, l.Col.Array), path, setFile, typeName(f.Footer.Type, f.Footer.Array()))
	}
	if known && (s.Precision != l.Col.Precision || s.Scale != l.Col.Scale) {
		return fault.Corruptf(at, "footer.metadata["+block.FieldKey+"]",
			"expected decimals of precision %d and scale %d of column %q by %s, found %d and %d", l.Col.Precision,
			l.Col.Scale, path, setFile, s.Precision, s.Scale)
	}
	return nil
}

// namesNone reports whether the metadata of column i's file lost the column's name, which all files of a set have that
// has an id and marks.
func (t *fileSet) namesNone(f *columnfile.File, i int) bool {
	s, _ := f.Footer.Stored()
	return s.Name == "" && t.Columns[i].Path != "" && t.ID != "" && len(t.Columns[i].Marks) > 0 && f.CountKnown()
}

// checkID compares the id in the file of column i with the set's. If they match, it also compares the file's size with
// the one that sets without an id record. If the set has an id, a file without one belongs to another set. The error is
// Corrupt.
func (t *fileSet) checkID(f *columnfile.File, i int) error {
	b, known := f.Footer.Get(block.SetKey)
	id, at, path := string(b), f.FootSpan(), "footer.metadata["+block.SetKey+"]"
	switch n := t.Columns[i].Size; {
	case id == t.ID && n > 0 && n != f.At.Len:
		return fault.Corruptf(f.At, "", "%d bytes, expected %d of the file of column %q by %s: one of the two is "+
			"another table's", f.At.Len, n, t.Columns[i].Path, setFile)
	case id == t.ID:
		return nil
	case !known:
		return fault.Corruptf(at, path, "missing: the file of column %q was written by itself, or with "+
			"another table, not with the set %s of %s", t.Columns[i].Path, t.ID, setFile)
	case t.ID == "":
		return fault.Corruptf(at, path, "the file of column %q was written with the set %q, and %s is that of "+
			"another, which has no id", t.Columns[i].Path, id, setFile)
	}
	return fault.Corruptf(at, path, "the file of column %q was written with the set %q, %s with %q: they are of "+
		"different tables", t.Columns[i].Path, id, setFile, t.ID)
}

// holdsName returns the word that messages use for the contents of a column's file.
func holdsName(holds string) string {
	if holds == "" {
		return "values"
	}
	return holds
}

// typeName returns the name of a column's type as used in messages.
func typeName(t block.Type, array bool) string {
	if array {
		return t.String() + " array"
	}
	return t.String()
}

// leafAt returns leaf i, or nil if the schema of the set is unknown.
func leafAt(leaves []write.Leaf, i int) *write.Leaf {
	if i >= len(leaves) {
		return nil
	}
	return &leaves[i]
}

// arrowSchema returns the stored schema. It returns nil instead of an error if the schema cannot be parsed, since the
// files record their types as well.
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
		if err := set.checkColumn(f, i, leafAt(leaves, i)); err != nil {
			t.Close()
			return nil, err
		}
		if err := set.checkID(f, i); err != nil {
			t.Close()
			return nil, err
		}
	}
	t.Finish(set, leaves, opts)
	t.unread = set.unread(ctx, tg, o.Limits)
	return t, nil
}

// stamp returns the stamp of the setFile joined with a digest of the names, sizes and stamps of the columns' files; ""
// if the tree has no stamps.
func (t *fileSet) stamp(ctx context.Context, tg format.Target) string {
	ofSet := stampOf(ctx, format.Target{Tree: tg.Tree, Name: inDir(tg, setFile)})
	if ofSet == "" {
		return ""
	}
	h := sha256.New()
	for _, c := range t.Columns {
		info, _ := tg.Tree.Stat(ctx, inDir(tg, c.File)) // a missing file is reported when it is opened
		fmt.Fprintf(h, "%q %d %q\n", c.File, info.Size, info.Stamp)
	}
	return fmt.Sprintf("%s-%x", ofSet, h.Sum(nil)[:16])
}

// setDamage returns the error for a damaged setFile in a directory.
func setDamage(tg format.Target, err error) error {
	return fault.Locate(err, fault.Span{Object: inDir(tg, setFile)}, true, "")
}

// openColumnFile opens the file of a column of a set. A missing file is damage of the set.
func openColumnFile(ctx context.Context, tg format.Target, c setColumn, o format.OpenOptions) (*columnfile.File,
	error) {
	name := inDir(tg, c.File)
	f, err := openTarget(ctx, format.Target{Tree: tg.Tree, Name: name}, o)
	if isMissing(err) {
		err = missing(name, c)
	}
	return f, err
}

// isMissing reports whether err, from opening the file of a column, means that the file is missing: nothing has its
// name, or something other than a regular file has it.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) || store.NoFile(err) }

// unknownTable says what is lost without a setFile.
const unknownTable = "the table's files, their order and its number of rows are unknown"

// noSet is the error of a directory without a setFile.
func noSet(tg format.Target) error {
	return fault.Corruptf(fault.Span{Object: inDir(tg, setFile)}, "", "the file is missing: %s", unknownTable)
}

// missing is the error of a missing file of column c.
func missing(name string, c setColumn) error {
	return fault.Corruptf(fault.Span{Object: name}, "", "the file of column %q is missing, but %s names it",
		c.Path, setFile)
}

// Finish sets the schema and the facts of the open files of a set. leaves are their columns; nil if unknown.
func (t *table) Finish(set fileSet, leaves []write.Leaf, o columnfile.ReadOptions) {
	sc := set.arrowSchema()
	var meta *arrow.Metadata
	if sc != nil {
		m := sc.Metadata()
		meta = &m
	}
	fieldOf := func(i int, name string) arrow.Field {
		o.Name = name
		f := t.files[i].Field(o)
		f.Name = name // even if that is ""
		return f
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
		s = nestedShape(sc, leaves, fieldOf)
	} else {
		s = flatShape(sc, names, fieldOf)
	}
	for i, p := range s.places {
		t.files[i].place = p
	}
	t.sc, t.stored = arrow.NewSchema(s.shown, meta), arrow.NewSchema(s.stored, meta)
}

// unevenRows returns the error for f, the last file of t, whose number of rows differs from that of the file before it
// or, if it is the first file, from that of the set.
func unevenRows(t *table, set fileSet, f *columnfile.File) error {
	other, n := setFile, set.Rows
	if len(t.files) > 1 {
		before := t.files[len(t.files)-2]
		other, n = before.At.Object, before.Footer.NumValues
	}
	return fault.Corruptf(f.FootSpan(), "footer.num_values", "%s has %s, %s has %d", f.At.Object,
		fault.Count(f.Footer.NumValues, "row"), other, n)
}
