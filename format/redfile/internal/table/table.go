package table

import (
	"cmp"
	"context"
	"errors"
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
	Stamp string // of the object, as store.Info has it; "" if it has none

	schemaTree   *schema.Node // of the file's own schema; nil: generation A or B
	arrowUsed    bool         // the Arrow schema in the metadata is used
	Shown        *arrow.Schema
	Leaves       []schema.Leaf
	Recovering   bool  // a damaged Arrow schema is not an error
	SchemaDamage error // while recovering: the damage of the Arrow schema
	NameDamage   error // two row groups name a column differently, see secondNames

	Guessed string // of an inferred schema: how certain it is, for users; "" if the schema is stored

	Reported []region.Finding // gathered by CheckTable, CheckParts and CheckChunks

	mu     sync.Mutex
	voted  map[int]int64 // rows of row groups whose columns contradict each other, see outvoted
	tables map[container.ChunkKey]*page.Table
}

// OpenTarget opens the file at tg with the options in o.Opts. If the metadata cannot be read, it returns an error and a
// closed File with as much of the metadata as was read.
func OpenTarget(ctx context.Context, tg format.Target, o format.OpenOptions) (*File, error) {
	opts, err := layout.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	return OpenTargetWith(ctx, tg, o, opts)
}

// OpenTargetWith is OpenTarget with parsed options.
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
		err = f.checkStandIn(ctx)
	}
	if err != nil {
		f.Close()
		return f, err
	}
	return f, nil
}

// New returns a File from which nothing has been read yet; at is the span of the RedFile within src.
func New(tree store.Tree, src store.Source, at fault.Span, o format.OpenOptions, opts layout.ReadOptions) *File {
	return &File{File: container.New(tree, src, at, o, opts), tables: map[container.ChunkKey]*page.Table{}}
}

// StampOf returns the stamp of the object at tg, "" if it has none.
func StampOf(ctx context.Context, tg format.Target) string {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil {
		return ""
	}
	return info.Stamp
}

// Open reads the metadata of the file and determines the schema. With trace, which describes the file, NameDamage is
// not an error, since all structures are there.
func (f *File) Open(ctx context.Context, trace func(region.Node)) error {
	if err := f.File.Open(ctx, trace); err != nil {
		return err
	}
	if err := f.ResolveSchema(ctx); err != nil || trace != nil {
		return err
	}
	return f.NameDamage
}

// Table returns the pages of a chunk. All calls for a chunk return the same Table.
func (f *File) Table(ctx context.Context, group, col int) (*page.Table, error) {
	key := container.ChunkKey{Group: group, Col: col}
	f.mu.Lock()
	t, ok := f.tables[key]
	f.mu.Unlock()
	if ok {
		return t, nil
	}
	m, err := f.ColumnMeta(ctx, group, col)
	if err != nil && (m == nil || !errors.Is(err, fault.Unsupported)) {
		return nil, err
	}
	// A contradiction to the schema is damage, even if the contradicting value is also one that is not supported.
	if err := cmp.Or(f.Contradiction(m, group, col), err); err != nil {
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
