package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
	"stoa/internal/typewords"
	"stoa/wire"

	"github.com/apache/arrow-go/v18/arrow"
)

// ResolveSchema determines the leaves and the Arrow schema from the metadata.
func (f *File) ResolveSchema(ctx context.Context) error {
	if f.Opts.ArrowSchema != "" {
		f.Footer.Pairs = append(f.Footer.Pairs, layout.KeyValue{Key: schema.SchemaKey, Value: f.Opts.ArrowSchema})
	}
	err := f.checkSchemaSize()
	if err != nil {
		return err
	}
	switch f.Footer.Gen {
	case layout.GenD, layout.GenE:
		if f.schemaTree, err = schema.TreeOfElements(f.Footer.Schema, f.Footer.Gen, f.Limits, f.MetaAt); err != nil {
			return err
		}
	case layout.GenC:
		if f.schemaTree, err = schema.ParseText(f.Footer.Text, f.Limits, f.MetaAt); err != nil {
			return err
		}
	}
	var stored []schema.Leaf
	if f.schemaTree != nil {
		stored = schema.LeavesOf(f.schemaTree)
	} else if stored, err = f.leavesOfChunks(ctx); err != nil {
		return err
	}
	for _, l := range stored {
		if err := f.Limits.FitGroups(len(l.Path)-1, f.MetaAt, "file_metadata.schema"); err != nil {
			return err
		}
	}
	if len(f.Footer.Groups) > 0 && len(stored) != len(f.Footer.Groups[0].Columns) {
		return fault.Corruptf(f.MetaAt, layout.RowGroupPath(0)+".columns", "expected %d column chunks by the schema, "+
			"found %d", len(stored), len(f.Footer.Groups[0].Columns))
	}
	if f.schemaTree == nil && f.Opts.Schema != "" {
		return f.readSchemaOption(ctx, stored)
	}
	taken, err := f.useArrow(stored)
	if err != nil && f.Recovering {
		f.Footer.Pairs = slices.DeleteFunc(slices.Clone(f.Footer.Pairs),
			func(kv layout.KeyValue) bool { return kv.Key == schema.SchemaKey || kv.Key == schema.SumKey })
		taken, err, f.SchemaDamage = f.useSyncCopy(ctx, stored), nil, err
	}
	if f.arrowUsed = taken; err == nil && !taken && f.schemaTree == nil {
		err = f.infer(ctx, stored)
	} else if err == nil && !taken {
		err = f.makeArrow(stored)
	}
	if err != nil {
		return err
	}
	return f.Limits.Fit(f.Schema(), f.MetaAt, "file_metadata.schema")
}

// NamedOnce reports whether the names of columns are stored only once, in the column metadata of the only row group, as
// in a file of generation A or B without an Arrow schema.
func (f *File) NamedOnce() bool {
	return f.Footer.Gen < layout.GenC && !f.arrowUsed && len(f.Footer.Groups) == 1
}

// checkSchemaSize returns an error of class Limit if the schema is larger than the limits allow, before it is built.
func (f *File) checkSchemaSize() error {
	fields, text := len(f.Footer.Schema), int64(len(f.Footer.Text))
	if f.Footer.Gen < layout.GenC && len(f.Footer.Groups) > 0 {
		fields = len(f.Footer.Groups[0].Columns)
	}
	for _, kv := range f.Footer.Pairs {
		if kv.Key == schema.SchemaKey {
			text += int64(len(kv.Value))
		}
	}
	const perByte = 64 // of a text schema, in which a field takes several bytes
	if err := f.Limits.FitSize(int64(fields), 0, f.MetaAt, "file_metadata.schema"); err != nil {
		return err
	}
	return f.Limits.Memory().Take(perByte*text, f.MetaAt, "file_metadata.schema")
}

// makeArrow converts the file's own schema to an Arrow schema.
func (f *File) makeArrow(stored []schema.Leaf) error {
	var fields []arrow.Field
	for _, c := range f.schemaTree.Children {
		fd, err := c.Field(&f.Opts)
		if err != nil {
			return err
		}
		fields = append(fields, fd)
	}
	f.Shown = arrow.NewSchema(fields, nil)
	ls, err := schema.ArrowLeaves(f.Shown)
	if err != nil {
		return err
	}
	if len(ls) != len(stored) {
		return fault.Bugf("redfile: %d Arrow leaves of %s", len(ls), fault.Count(len(stored), "column"))
	}
	for i := range ls {
		if ls[i].Type != stored[i].Type || ls[i].MaxDef != stored[i].MaxDef || ls[i].MaxRep != stored[i].MaxRep {
			return fault.Bugf("redfile: column %s: levels %d and %d became %d and %d",
				strings.Join(stored[i].Path, "."),
				stored[i].MaxDef, stored[i].MaxRep, ls[i].MaxDef, ls[i].MaxRep)
		}
		ls[i].Path = stored[i].Path
	}
	f.Leaves = ls
	return nil
}

// useArrow uses the Arrow schema in the metadata, if there is one. Only our writer stores one, so an unusable one is
// damage.
func (f *File) useArrow(stored []schema.Leaf) (taken bool, err error) {
	sc, err := schema.ArrowOf(&f.Footer, f.Limits, f.MetaAt)
	if fault.OverBudget(err) {
		return false, err
	}
	if err == nil && sc != nil {
		err = f.setArrowSchema(sc, stored)
	}
	if _, summed := f.Footer.Pair(schema.SumKey); err == nil && sc != nil && !summed && f.Opts.Schema == "" {
		err = schema.SameNames(sc, stored)
	}
	if err != nil {
		return false, fault.Corruptf(f.MetaAt, "file_metadata.key_value_metadata."+schema.SchemaKey,
			"the Arrow schema of the file: %v", err)
	}
	return sc != nil, nil
}

// setArrowSchema sets the Arrow schema to sc if its leaves match the stored ones.
func (f *File) setArrowSchema(sc *arrow.Schema, stored []schema.Leaf) error {
	ls, err := schema.ArrowLeaves(sc)
	if err != nil {
		return err
	}
	if len(ls) != len(stored) && len(stored) > 0 {
		return fmt.Errorf("expected %s, it has %d", fault.Count(len(stored), "column"), len(ls))
	}
	for i := range stored {
		if ls[i].Type != stored[i].Type || ls[i].MaxDef != stored[i].MaxDef || ls[i].MaxRep != stored[i].MaxRep {
			return fmt.Errorf("its column %s would be stored as %s with maximum levels %d and %d, and the file has "+
				"%s with %d and %d", ls[i].Column.Name, ls[i].Type, ls[i].MaxDef, ls[i].MaxRep, stored[i].Type,
				stored[i].MaxDef, stored[i].MaxRep)
		}
		ls[i].Path = stored[i].Path
	}
	f.Shown, f.Leaves = sc, ls
	return nil
}

// useSyncCopy uses the Arrow schema in the sync block at the beginning of the file, if that block is intact.
func (f *File) useSyncCopy(ctx context.Context, stored []schema.Leaf) bool {
	s, at := f.FirstBlock(ctx)
	if s == nil || s.Metadata == nil {
		return false
	}
	c := wire.NewInnerCursor(s.Metadata, at, "sync.metadata")
	m, _ := layout.ParseFileMeta(c.Within(f.Limits.Memory()))
	if c.Err() != nil {
		return false
	}
	sc, err := schema.ArrowOf(&m, f.Limits, at)
	if err != nil || sc == nil || f.setArrowSchema(sc, stored) != nil {
		return false
	}
	f.Footer.Pairs = append(f.Footer.Pairs, m.Pairs...)
	return true
}

// readSchemaOption uses the schema of option schema.
func (f *File) readSchemaOption(ctx context.Context, stored []schema.Leaf) error {
	name := f.Opts.Schema
	m, err := f.LoadSchema(ctx, name, format.OpenOptions{Limits: f.Limits})
	if err != nil {
		return err
	}
	tree, err := schema.TreeOfElements(m.Schema, m.Gen, f.Limits, fault.Span{Object: name})
	if err != nil {
		return err
	}
	leaves := schema.LeavesOf(tree)
	same := func(a, b schema.Leaf) bool {
		return a.Type == b.Type && a.MaxDef == b.MaxDef && a.MaxRep == b.MaxRep && len(b.Path) > 0 &&
			a.Path[0] == b.Path[0]
	}
	if len(stored) > 0 && !slices.EqualFunc(leaves, stored, same) {
		return fault.Invalidf("schema=%s: the columns of %s are not of this schema: their number, names, types "+
			"or max levels are others", name, f.At.Object)
	}
	f.Footer.Pairs = append(slices.DeleteFunc(slices.Clone(f.Footer.Pairs),
		func(kv layout.KeyValue) bool { return kv.Key == schema.SchemaKey || kv.Key == schema.SumKey }), m.Pairs...)
	if taken, err := f.useArrow(stored); taken || err != nil {
		return err
	}
	f.schemaTree = tree
	return f.makeArrow(stored)
}

// LoadSchema returns metadata of generation E, without row groups, with the schema in the object name: a RedFile, or
// JSON as printed by stoa schema -f json. If it is a RedFile that cannot be opened, the error is Invalid.
func (f *File) LoadSchema(ctx context.Context, name string, o format.OpenOptions) (*layout.FileMeta, error) {
	tg := format.Target{Tree: f.Tree, Name: name}
	var sc *arrow.Schema
	if match, err := container.Probe(ctx, tg); err == nil && match > format.No {
		o.Opts, o.Tracer = nil, nil
		other, err := OpenTarget(ctx, tg, o)
		if err != nil {
			return nil, fault.Invalidf("schema=%s: not a whole RedFile: %v", name, err)
		}
		defer other.Close()
		if m := other.Footer; m.Gen == layout.GenE && len(m.Schema) > 0 {
			m.Groups, m.Pairs = nil, slices.DeleteFunc(slices.Clone(m.Pairs),
				func(kv layout.KeyValue) bool { return kv.Key != schema.SchemaKey && kv.Key != schema.SumKey })
			return &m, nil
		}
		sc = other.Shown
	} else {
		fields, err := format.ReadSchemaFile(ctx, f.Tree, name)
		if err == nil {
			sc, err = typewords.Of(fields)
		}
		if err != nil {
			return nil, err
		}
	}
	tree, err := schema.TreeOf(schema.CanonicalSchema(sc))
	if err != nil {
		return nil, fault.Invalidf("schema=%s: no RedFile is of this schema: %v", name, err)
	}
	m := &layout.FileMeta{Gen: layout.GenE, Version: 1, NumCols: -1, Schema: tree.Elements(nil)}
	text, err := schema.SchemaText(schema.CanonicalSchema(sc))
	if err != nil {
		return nil, err
	}
	m.Pairs = []layout.KeyValue{{Key: schema.SchemaKey, Value: text}}
	return m, nil
}
