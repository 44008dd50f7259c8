package kudu

import (
	"context"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/region"
	"stoa/vec"
)

// recoverTable opens what is left of a table: tablets that are missing are left out, and in each block the pages are found again as package cfile
// finds them, without a sound index or footer. What the schema says stands in for a footer that is gone.
func recoverTable(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	ro, err := parseOptions(o.Opts)
	if err != nil {
		return nil, nil, err
	}
	ro.partial = true
	t, err := openTable(ctx, tg, o, ro)
	if err != nil {
		return nil, nil, err
	}
	t.recovered = &recovered{files: map[uint64]recoveredFile{}}
	return t, t.findings, nil
}

// recovered are the blocks that were opened for recovery.
type recovered struct {
	mu       sync.Mutex
	files    map[uint64]recoveredFile
	findings []region.Finding
}

type recoveredFile struct {
	r   format.Reader
	g   format.RowGroup
	err error
}

func (x *recovered) close() (first error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.files {
		if f.r != nil {
			if err := f.r.Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	x.files = map[uint64]recoveredFile{}
	return first
}

// recoverColumn opens a block for recovery, once.
func (t *table) recoverColumn(ctx context.Context, s *rowSet, col int, b BlockRef, rows vec.Range) (*columnChunk, error) {
	places, err := t.places(ctx, s, b)
	if len(places) == 0 {
		return nil, err
	}
	x := t.recovered
	x.mu.Lock()
	defer x.mu.Unlock()
	f, ok := x.files[b.ID]
	if !ok {
		f = t.recoverBlock(ctx, s, col, places[0])
		if f.err != nil && !damaged(f.err) {
			return nil, f.err
		}
		x.files[b.ID] = f
	}
	if f.err != nil {
		return nil, f.err
	}
	inner, err := f.r.Chunk(ctx, f.g, 0, rows)
	if err != nil {
		return nil, err
	}
	return t.newColumnChunk(inner, s, col, places, rows), nil
}

func (t *table) recoverBlock(ctx context.Context, s *rowSet, col int, p Place) (f recoveredFile) {
	c := &t.schema.Columns[col]
	o := t.cfileOptions()
	o.Opts = map[string]string{"kind": "column", "type": c.Type.String(), "encoding": encodingOption(c), "nullable": map[bool]string{true: "true", false: "false"}[c.Nullable]}
	if name := compressionOption[c.Compression]; name != "" {
		o.Opts["compression"] = name
	}
	tg := format.Target{Tree: t.tree, Name: p.At.Object, At: vec.Range{From: p.At.Off, To: p.At.End()}}
	var found []region.Finding
	f.r, found, f.err = cfile.Format.Recover(ctx, tg, o)
	for _, x := range found {
		x.Part, x.Column = s.tablet.ID, c.Name
		t.recovered.findings = append(t.recovered.findings, x)
	}
	if f.err != nil {
		return f
	}
	for part, err := range f.r.Parts(ctx, format.Query{}) {
		if err != nil {
			f.err = err
			return f
		}
		groups, err := f.r.RowGroups(ctx, part, format.Query{})
		if err != nil || len(groups) != 1 {
			f.err = fault.Corruptf(p.At, "", "the block is no column file: %v", err)
			return f
		}
		f.g = groups[0]
	}
	return f
}

// compressionOption and encodingOption are the names that package cfile has for the options of Recover.
var compressionOption = map[cfile.Compression]string{cfile.NoCompression: "none", cfile.Snappy: "snappy", cfile.LZ4: "lz4", cfile.Zlib: "zlib", cfile.DefaultCompression: "none"}

func encodingOption(c *Column) string {
	switch c.Encoding {
	case cfile.Plain:
		return "plain"
	case cfile.Prefix:
		return "prefix"
	case cfile.RLE:
		return "rle"
	case cfile.Dict:
		return "dict"
	case cfile.BitShuffle:
		return "bitshuffle"
	case cfile.GroupVarint:
		return "group-varint"
	}
	switch { // what Kudu takes if nobody says
	case c.Type.IsBinary():
		return "dict"
	case c.Type == cfile.Bool:
		return "rle"
	}
	return "bitshuffle"
}
