package fetch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

// Objects opens the objects that contain pages, each once. It is safe for concurrent use.
type Objects struct {
	tree store.Tree
	maps bool // files are mapped into memory, as far as possible
	mu   sync.Mutex
	open map[string]store.Source
	// the files that are mapped; nil: not possible
	mapped map[string]*store.Mapping
}

// NewObjects returns Objects that opens from tree.
func NewObjects(tree store.Tree) *Objects {
	return &Objects{tree: tree, open: map[string]store.Source{}, mapped: map[string]*store.Mapping{}}
}

// Mapped makes o map files of the local file system into memory, as far as possible, if maps is true. It returns o.
func (o *Objects) Mapped(maps bool) *Objects {
	o.maps = maps
	return o
}

// maxMapped is the maximum number of files that are mapped: a process may have 65,530 mappings, unless told otherwise.
const maxMapped = 4096

// local reports whether an object is a file of the local file system.
func (o *Objects) local(ctx context.Context, name string) bool {
	s, err := o.get(ctx, name)
	return err == nil && store.LocalSource(s)
}

// view returns the bytes at as they are mapped, until release is called; nil if they have to be read.
func (o *Objects) view(ctx context.Context, at fault.Span) (b []byte, release func() error) {
	if !o.maps || at.Off < 0 || at.Len <= 0 {
		return nil, nil
	}
	s, err := o.get(ctx, at.Object)
	if err != nil {
		return nil, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	m, known := o.mapped[at.Object]
	if !known && len(o.mapped) < maxMapped {
		if m, err = store.Map(ctx, s); err != nil || int64(len(m.Bytes())) != s.Size() {
			m = nil
		}
		o.mapped[at.Object] = m
	}
	if m == nil || at.End() > s.Size() || !m.Retain() {
		return nil, nil
	}
	return m.Bytes()[at.Off:at.End():at.End()], m.Release
}

func (o *Objects) get(ctx context.Context, name string) (store.Source, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s, ok := o.open[name]; ok {
		return s, nil
	}
	s, err := o.tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	o.open[name] = s
	return s, nil
}

// Names returns the names of the objects that were opened.
func (o *Objects) Names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.open))
}

// Foresee says that ranges of an object will be read completely, and soon.
func (o *Objects) Foresee(ctx context.Context, name string, ranges []store.Range) (done func()) {
	s, err := o.get(ctx, name)
	if err != nil {
		return nil // a read will say so
	}
	return store.Foresee(ctx, s, ranges)
}

// readInto reads the bytes at into *buf, which it enlarges if necessary. Sizes declared by the file are not trusted
// beyond its end: a span past it is refused before memory is allocated.
func (o *Objects) readInto(ctx context.Context, buf *[]byte, at fault.Span) error {
	s, err := o.get(ctx, at.Object)
	if err != nil {
		return err
	}
	if at.Off < 0 || at.Len < 0 || at.End() > s.Size() {
		return fault.Corruptf(at, "", "reaches past the end of the file (%d)", s.Size())
	}
	if int64(cap(*buf)) < at.Len {
		*buf = make([]byte, at.Len)
	}
	*buf = (*buf)[:at.Len]
	return format.ReadFull(ctx, s, at, "", *buf)
}

// Close closes every object.
func (o *Objects) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var err error
	for _, s := range o.open {
		err = errors.Join(err, s.Close())
	}
	for _, m := range o.mapped {
		if m != nil {
			err = errors.Join(err, m.Release())
		}
	}
	o.open, o.mapped = map[string]store.Source{}, map[string]*store.Mapping{}
	return err
}

// Dicts keeps decoded dictionaries, keyed by their spans. It is safe for concurrent use.
type Dicts struct {
	mu   sync.Mutex
	have map[string]*vec.Vector
}

// NewDicts returns an empty cache.
func NewDicts() *Dicts { return &Dicts{have: map[string]*vec.Vector{}} }

// Close releases the dictionaries.
func (d *Dicts) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.have {
		v.Release()
	}
	d.have = map[string]*vec.Vector{}
}

// Get returns the chunk's decoded dictionary, or nil if the chunk has none.
func (d *Dicts) Get(ctx context.Context, src Source, col format.Column, c format.Chunk) (*vec.Vector, error) {
	page, ok := c.Dict()
	if !ok {
		return nil, nil
	}
	if page.Lost != nil {
		return nil, page.Lost
	}
	var key strings.Builder
	for _, s := range page.Spans {
		fmt.Fprintf(&key, "%s\x00%d\x00%d\x00", s.Object, s.Off, s.Len)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.have[key.String()]; v != nil {
		return v, nil
	}
	v, err := vec.New(col.Type, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	task := format.Task{Page: page, N: page.Entries, Scratch: &vec.Arena{}, Limits: src.Limits, NoVerify: src.NoVerify}
	for _, s := range page.Spans {
		if s.Len > src.Limits.Page {
			return nil, fault.Limitf(s, "dictionary",
				"%d bytes are more than a page may have (%d, page limit or memory limit)", s.Len,
				src.Limits.Page)
		}
		b, err := ReadSpan(ctx, src.Objects, s)
		if err != nil {
			return nil, err
		}
		task.Bytes = append(task.Bytes, b)
	}
	if err := Decode(c, &task, v); err != nil {
		v.Release()
		return nil, err
	}
	v.AsDict()
	d.have[key.String()] = v
	return v, nil
}

// ReadSpan reads the bytes at.
func ReadSpan(ctx context.Context, o *Objects, at fault.Span) (b []byte, err error) {
	err = o.readInto(ctx, &b, at)
	return b, err
}

// Source is an open reader with everything else that a scan needs.
type Source struct {
	Reader   format.Reader
	Objects  *Objects   // opens data objects
	Dicts    *Dicts     // decoded dictionaries, shared by all scans
	Pages    *vec.Cache // decoded pages of which scans wanted only a few rows; nil = keep none
	Limits   format.Limits
	NoVerify bool
}
