package table

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/page"
	"stoa/format/redfile/internal/schema"
	"stoa/region"
	"stoa/store"
)

// File is an open RedFile with its schema. It is a format.Reader.
type File struct {
	*container.File
	Stamp string

	tree0        *schema.Node // the schema as the file has it
	kept         bool         // the Arrow schema that the writer kept is taken
	Shown        *arrow.Schema
	Leaves       []schema.Leaf
	Recovering   bool  // an Arrow schema that is damaged is done without
	SchemaDamage error // recovering: what is wrong with the Arrow schema

	Guessed string // generation A or B without an Arrow schema: how sure its schema is, in a sentence

	Missing []region.Finding // shown by lookAround

	mu     sync.Mutex
	voted  map[int]int64 // rows of row groups of which the columns say different numbers, see outvoted
	tables map[container.ChunkKey]*page.Table
}

// OpenTarget opens the file at tg. What it understood is in f also when it fails.
func OpenTarget(ctx context.Context, tg format.Target, o format.OpenOptions) (*File, error) {
	opts, err := layout.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	return OpenTargetWith(ctx, tg, o, opts)
}

func OpenTargetWith(ctx context.Context, tg format.Target, o format.OpenOptions,
	opts layout.ReadOptions) (*File, error) {
	tg = container.InDir(ctx, tg)
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, err
	}
	f := New(tg.Tree, src, fault.Span{Object: tg.Name, Off: base, Len: size}, o, opts)
	f.Stamp = StampOf(ctx, tg)
	err = f.Open(ctx, o.Tracer)
	if err == nil {
		err = f.strayed(ctx)
	}
	if err != nil {
		f.Close()
		return f, err
	}
	return f, nil
}

func New(tree store.Tree, src store.Source, at fault.Span, o format.OpenOptions, opts layout.ReadOptions) *File {
	return &File{File: container.New(tree, src, at, o, opts), tables: map[container.ChunkKey]*page.Table{}}
}

func StampOf(ctx context.Context, tg format.Target) string {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil {
		return ""
	}
	return info.Stamp
}

// Open reads the metadata of the file and works out the schema.
func (f *File) Open(ctx context.Context, trace func(region.Node)) error {
	if err := f.File.Open(ctx, trace); err != nil {
		return err
	}
	return f.Learn(ctx)
}

// Table is the pages of a chunk.
func (f *File) Table(ctx context.Context, group, col int) (*page.Table, error) {
	key := container.ChunkKey{Group: group, Col: col}
	f.mu.Lock()
	t, ok := f.tables[key]
	f.mu.Unlock()
	if ok {
		return t, nil
	}
	m, err := f.ColumnMeta(ctx, group, col)
	if err != nil {
		return nil, err
	}
	if err := f.CheckMeta(m, &f.Leaves[col], group, col); err != nil {
		return nil, err
	}
	rows, err := f.RowsOf(ctx, group)
	if err != nil {
		return nil, err
	}
	if t, err = page.NewTable(ctx, f.File, &f.Leaves[col], group, col, m, rows); err != nil {
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
