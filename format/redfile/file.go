package redfile

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// file is an open RedFile with its schema. It is a format.Reader.
type file struct {
	*content
	stamp string

	tree0      *node // the schema as the file has it
	schema     *arrow.Schema
	leaves     []leaf
	recovering bool  // an Arrow schema that is damaged is done without
	damaged    error // recovering: what is wrong with the Arrow schema

	guessed string // generation A or B without an Arrow schema: how sure its schema is, in a sentence

	missing []region.Finding // told by lookAround

	mu     sync.Mutex
	voted  map[int]int64 // rows of row groups of which the columns say different numbers, see outvoted
	tables map[chunkKey]*pageTable
}

// openTarget opens the file at tg. What it understood is in f also when it fails.
func openTarget(ctx context.Context, tg format.Target, o format.OpenOptions) (*file, error) {
	opts, err := parseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	return openTargetWith(ctx, tg, o, opts)
}

func openTargetWith(ctx context.Context, tg format.Target, o format.OpenOptions, opts readOptions) (*file, error) {
	tg = inDir(ctx, tg)
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, err
	}
	f := newFile(tg.Tree, src, fault.Span{Object: tg.Name, Off: base, Len: size}, o, opts)
	f.stamp = stampOf(ctx, tg)
	if err := f.open(ctx, o.Tracer); err != nil {
		f.Close()
		return f, err
	}
	return f, nil
}

func newFile(tree store.Tree, src store.Source, at fault.Span, o format.OpenOptions, opts readOptions) *file {
	return &file{content: newContent(tree, src, at, o, opts), tables: map[chunkKey]*pageTable{}}
}

func stampOf(ctx context.Context, tg format.Target) string {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil {
		return ""
	}
	return info.Stamp
}

// open reads the metadata of the file and works out the schema.
func (f *file) open(ctx context.Context, trace func(region.Node)) error {
	if err := f.content.open(ctx, trace); err != nil {
		return err
	}
	return f.learn(ctx)
}

// table is the pages of a chunk.
func (f *file) table(ctx context.Context, group, col int) (*pageTable, error) {
	key := chunkKey{group, col}
	f.mu.Lock()
	t, ok := f.tables[key]
	f.mu.Unlock()
	if ok {
		return t, nil
	}
	m, err := f.columnMeta(ctx, group, col)
	if err != nil {
		return nil, err
	}
	if err := f.fits(m, &f.leaves[col], group, col); err != nil {
		return nil, err
	}
	rows, err := f.rowsOf(ctx, group)
	if err != nil {
		return nil, err
	}
	if t, err = newPageTable(ctx, f.content, &f.leaves[col], group, col, m, rows); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.tables[key]; ok {
		return old, nil
	}
	f.tables[key] = t
	return t, nil
}
