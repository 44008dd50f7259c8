package redfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/typewords"
	"stoa/wire"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// learn works out the leaves and the Arrow schema.
func (f *file) learn(ctx context.Context) error {
	if f.opts.kept != "" {
		f.meta.pairs = append(f.meta.pairs, keyValue{schemaKey, f.opts.kept})
	}
	err := f.affordable()
	if err != nil {
		return err
	}
	switch f.meta.gen {
	case GenD, GenE:
		if f.tree0, err = treeOfElements(f.meta.schema, f.meta.gen, f.metaAt); err != nil {
			return err
		}
	case GenC:
		if f.tree0, err = parseText(f.meta.text, f.metaAt); err != nil {
			return err
		}
	}
	var stored []leaf
	if f.tree0 != nil {
		stored = leavesOf(f.tree0)
	} else if stored, err = f.leavesOfChunks(ctx); err != nil {
		return err
	}
	if i := slices.IndexFunc(stored, func(l leaf) bool { return int64(len(l.path)) > f.limits.Depth+1 }); i >= 0 {
		return fault.Limitf(f.metaAt, "file_metadata.schema",
			"column %d is %d groups deep, and at most %d are read (--max-depth)", i, len(stored[i].path)-1,
			f.limits.Depth)
	}
	if len(f.meta.groups) > 0 && len(stored) != len(f.meta.groups[0].columns) {
		return fault.Corruptf(f.metaAt, rowGroupPath(0)+".columns", "%d column chunks, the schema has %d leaves",
			len(f.meta.groups[0].columns), len(stored))
	}
	if f.tree0 == nil && f.opts.schema != "" {
		return f.toldSchema(ctx, stored)
	}
	taken, err := f.takeArrow(stored)
	if err != nil && f.recovering {
		f.meta.pairs = slices.DeleteFunc(slices.Clone(f.meta.pairs),
			func(kv keyValue) bool { return kv.key == schemaKey || kv.key == sumKey })
		taken, err, f.damaged = f.takeCopy(ctx, stored), nil, err
	}
	switch {
	case err != nil || taken:
		return err
	case f.tree0 == nil:
		return f.infer(ctx, stored)
	}
	return f.makeArrow(stored)
}

// affordable refuses a schema that is more than the limits allow before it is made.
func (f *file) affordable() error {
	fields, text := len(f.meta.schema), int64(len(f.meta.text))
	if f.meta.gen < GenC && len(f.meta.groups) > 0 {
		fields = len(f.meta.groups[0].columns)
	}
	for _, kv := range f.meta.pairs {
		if kv.key == schemaKey {
			text += int64(len(kv.value))
		}
	}
	const perByte = 64 // of a text that is a schema: a field has some bytes
	if err := f.limits.FitSize(int64(fields), 0, f.metaAt, "file_metadata.schema"); err != nil {
		return err
	}
	return f.limits.Memory().Take(perByte*text, f.metaAt, "file_metadata.schema")
}

// makeArrow makes an Arrow schema of RedFile's own.
func (f *file) makeArrow(stored []leaf) error {
	var fields []arrow.Field
	for _, c := range f.tree0.children {
		fd, err := c.field(&f.opts)
		if err != nil {
			return err
		}
		fields = append(fields, fd)
	}
	f.schema = arrow.NewSchema(fields, nil)
	ls, err := arrowLeaves(f.schema)
	if err != nil {
		return err
	}
	if len(ls) != len(stored) {
		return fault.Bugf("redfile: %d Arrow leaves of %d columns", len(ls), len(stored))
	}
	for i := range ls {
		if ls[i].typ != stored[i].typ || ls[i].maxDef != stored[i].maxDef || ls[i].maxRep != stored[i].maxRep {
			return fault.Bugf("redfile: column %s: levels %d and %d became %d and %d",
				strings.Join(stored[i].path, "."),
				stored[i].maxDef, stored[i].maxRep, ls[i].maxDef, ls[i].maxRep)
		}
		ls[i].path = stored[i].path
	}
	f.leaves = ls
	return nil
}

// leavesOfChunks takes the leaves from the metadata of the chunks, of the first row group in which it can be read.
func (f *file) leavesOfChunks(ctx context.Context) ([]leaf, error) {
	if len(f.meta.groups) == 0 {
		return nil, nil
	}
	out := make([]leaf, len(f.meta.groups[0].columns))
	var kept []leaf // by the Arrow schema of the writer
	if t := arrowTree(&f.meta, f.limits); t != nil {
		kept = leavesOf(t)
	}
	for col := range out {
		var first error
		var m *columnMeta
		for g := range f.meta.groups {
			var err error
			if m, err = f.columnMeta(ctx, g, col); err == nil {
				break
			}
			if first == nil {
				first = err
			}
			if m = nil; ctx.Err() != nil {
				break
			}
		}
		if m == nil && ctx.Err() == nil && len(kept) == len(out) {
			out[col] = kept[col]
			continue
		}
		if m == nil {
			return nil, first
		}
		if !m.hasLevels {
			return nil, fault.Corruptf(f.metaAt, chunkPath(0, col),
				"its metadata has no levels, and the file no schema")
		}
		out[col] = leaf{path: m.path, typ: m.typ, maxDef: uint8(m.maxDef), maxRep: uint8(m.maxRep), conv: m.converted()}
	}
	return out, nil
}

// takeArrow takes the Arrow schema that the writer kept, if there is one. It is an error if that is damaged: no
// writer but ours has one.
func (f *file) takeArrow(stored []leaf) (taken bool, err error) {
	sc, err := arrowOf(&f.meta, f.limits, f.metaAt)
	if errors.Is(err, fault.Limit) {
		return false, err
	}
	if err == nil && sc != nil {
		err = f.fitArrow(sc, stored)
	}
	if _, summed := f.meta.pair(sumKey); err == nil && sc != nil && !summed && f.opts.schema == "" {
		err = sameNames(sc, stored)
	}
	if err != nil {
		return false, fault.Corruptf(f.metaAt, "file_metadata.key_value_metadata."+schemaKey,
			"the Arrow schema of the file: %v", err)
	}
	return sc != nil, nil
}

// fitArrow takes an Arrow schema that has these leaves.
func (f *file) fitArrow(sc *arrow.Schema, stored []leaf) error {
	ls, err := arrowLeaves(sc)
	if err != nil {
		return err
	}
	if len(ls) != len(stored) && len(stored) > 0 {
		return fmt.Errorf("it has %d columns, and the file %d", len(ls), len(stored))
	}
	for i := range stored {
		if ls[i].typ != stored[i].typ || ls[i].maxDef != stored[i].maxDef || ls[i].maxRep != stored[i].maxRep {
			return fmt.Errorf("its column %s would be stored as %s with greatest levels %d and %d, and the file has "+
				"%s with %d and %d", ls[i].column.Name, ls[i].typ, ls[i].maxDef, ls[i].maxRep, stored[i].typ,
				stored[i].maxDef, stored[i].maxRep)
		}
		ls[i].path = stored[i].path
	}
	f.schema, f.leaves = sc, ls
	return nil
}

// takeCopy takes the Arrow schema of the sync block at the file's beginning, if there is one that is whole.
func (f *file) takeCopy(ctx context.Context, stored []leaf) bool {
	s, at := f.firstBlock(ctx)
	if s == nil || s.metadata == nil {
		return false
	}
	c := wire.NewInnerCursor(s.metadata, at, "sync.metadata")
	m, _ := parseFileMeta(c.Within(f.limits.Memory()))
	if c.Err() != nil {
		return false
	}
	sc, err := arrowOf(&m, f.limits, at)
	if err != nil || sc == nil || f.fitArrow(sc, stored) != nil {
		return false
	}
	f.meta.pairs = append(f.meta.pairs, m.pairs...)
	return true
}

// toldSchema takes the schema that the option says.
func (f *file) toldSchema(ctx context.Context, stored []leaf) error {
	name := f.opts.schema
	m, err := f.schemaFrom(ctx, name, format.OpenOptions{Limits: f.limits})
	if err != nil {
		return err
	}
	tree, err := treeOfElements(m.schema, m.gen, fault.Span{Object: name})
	if err != nil {
		return err
	}
	leaves := leavesOf(tree)
	same := func(a, b leaf) bool {
		return a.typ == b.typ && a.maxDef == b.maxDef && a.maxRep == b.maxRep && len(b.path) > 0 &&
			a.path[0] == b.path[0]
	}
	if len(stored) > 0 && !slices.EqualFunc(leaves, stored, same) {
		return fault.Invalidf("schema=%s: the columns of %s are not of this schema: their number, names, types "+
			"or greatest levels are others", name, f.at.Object)
	}
	f.meta.pairs = append(slices.DeleteFunc(slices.Clone(f.meta.pairs),
		func(kv keyValue) bool { return kv.key == schemaKey || kv.key == sumKey }), m.pairs...)
	if taken, err := f.takeArrow(stored); taken || err != nil {
		return err
	}
	f.tree0 = tree
	return f.makeArrow(stored)
}

// schemaFrom is metadata, without row groups, with the schema of a whole RedFile, or that a text says.
func (f *file) schemaFrom(ctx context.Context, name string, o format.OpenOptions) (*fileMeta, error) {
	tg := format.Target{Tree: f.tree, Name: name}
	var sc *arrow.Schema
	if match, err := probe(ctx, tg); err == nil && match > format.No {
		o.Opts, o.Tracer = nil, nil
		other, err := openTarget(ctx, tg, o)
		if err != nil {
			return nil, fault.Invalidf("schema=%s: not a whole RedFile: %v", name, err)
		}
		defer other.Close()
		if m := other.meta; m.gen == GenE && len(m.schema) > 0 {
			m.groups, m.pairs = nil, slices.DeleteFunc(slices.Clone(m.pairs),
				func(kv keyValue) bool { return kv.key != schemaKey && kv.key != sumKey })
			return &m, nil
		}
		sc = other.schema
	} else {
		fields, err := format.ReadSchemaFile(ctx, f.tree, name)
		if err == nil {
			sc, err = typewords.Of(fields)
		}
		if err != nil {
			return nil, err
		}
	}
	tree, err := treeOf(canonicalSchema(sc))
	if err != nil {
		return nil, fault.Invalidf("schema=%s: no RedFile is of this schema: %v", name, err)
	}
	m := &fileMeta{gen: GenE, version: 1, cols: -1, schema: tree.elements(nil)}
	text, err := schemaText(canonicalSchema(sc))
	if err != nil {
		return nil, err
	}
	m.pairs = []keyValue{{schemaKey, text}}
	return m, nil
}
