package table

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/region"
)

// Managed is a table that has a directory of its own, with a schema, a status and segments.
type Managed struct {
	*Table
	Path        string
	O           ReadOptions
	TableSchema layout.TableSchema
	Status      string // name of tablestatus
	Loads       []status.Load
	Updates     string // name of the update status; "" if there is none
	changes     map[string]*status.Update

	noting sync.Mutex
	Notes  []region.Finding

	once       sync.Mutex
	found      map[string]*Part // by name; nil: not listed yet
	list       []*Part
	unreadable map[string]error // segments with missing files, by the name that stands for them among the parts

	Guessed *guessedDeletes // recovering: the update status is not the one that tablestatus names

	partitions map[string][]Place // recovering: directories of partitions by segment; nil: not listed yet
}

// facts are what `stoa meta` prints of the table.
func (t *Managed) facts() {
	add := func(k string, v any) { t.meta = append(t.meta, format.KeyValue{Key: k, Value: fmt.Sprint(v)}) }
	add("format", "CarbonData table")
	t.TableSchema.Facts(add)
	for i := range t.Loads {
		l := &t.Loads[i]
		add("segment."+l.Name, l.Words())
	}
	if t.Updates != "" {
		add("update_status", path.Base(t.Updates))
	}
}

// Layout is the layout of rows that the schema declares.
func (t *Managed) Layout() format.Layout {
	l := format.Layout{Buckets: int(t.TableSchema.Buckets), Sorted: t.Table.Layout().Sorted}
	for i := range t.TableSchema.BucketBy {
		l.BucketBy = append(l.BucketBy, t.TableSchema.BucketBy[i].Name)
	}
	// the other kinds of partitions have no directories
	if p := t.TableSchema.Partition; p != nil && p.Kind == layout.NativeHive {
		for i := range p.Columns {
			l.Partitions = append(l.Partitions, p.Columns[i].Name)
		}
	}
	return l
}

// note adds a finding.
func (t *Managed) note(code string, at fault.Span, format string, args ...any) {
	t.noting.Lock()
	defer t.noting.Unlock()
	f := layout.Codes.Finding(code, at, t.Path, fmt.Sprintf(format, args...))
	f.Lost = 0 // lost rows are counted where reading meets them
	t.Notes = append(t.Notes, f)
}

// Findings is what was odd about the indexes of the segments read so far.
func (t *Managed) Findings() []region.Finding {
	t.noting.Lock()
	defer t.noting.Unlock()
	return slices.Clone(t.Notes)
}

// reportOnce reports a finding about the file name when recovering, the first time it is called for that name.
func (t *Managed) reportOnce(name string, f region.Finding) {
	if t.saved.First(name) {
		t.saved.Emit(f)
	}
}

// tolerate reports, when recovering, once for each name, that a delete delta cannot be used and that its rows come
// back. Otherwise it returns err.
func (t *Managed) tolerate(name string, err error) error {
	if err == nil || t.saved == nil || !errors.Is(err, fault.Corrupt) {
		return err
	}
	if e := (*fault.Error)(nil); errors.As(err, &e) {
		t.reportOnce(name, layout.Findingf("carbon.delete.damaged", e.At, t.Path,
			"%v: it is left out, and rows that it deletes come back", err))
	}
	return nil
}

// segmentFileOf is the name of the segment file of a load.
func (t *Managed) segmentFileOf(l *status.Load) string {
	return path.Join(t.Path, "Metadata", "segments", l.Segment)
}

// placeOf is where err locates the damage of the file name; the whole file, if err is about another.
func placeOf(err error, name string) fault.Span {
	if e := (*fault.Error)(nil); errors.As(err, &e) && e.At.Object == name {
		return e.At
	}
	return fault.Span{Object: name}
}

// Place is a directory with files of a segment.
type Place struct {
	Dir     string
	Indexes []string // names of its index files in the segment file; nil: not listed there
	values  []string // of the partition columns, name=value each
	guessed bool     // recovering: nothing says that these are all directories of the segment
	dropped bool     // recovering: the damaged segment file still says that this partition was dropped
}

// guessedDeletes says which delete deltas hold although no update status names them: those newer than the update status
// that was found.
type guessedDeletes struct {
	after, until int64           // times of deltas
	unlisted     map[string]bool // segments that have deletes, and no entry in the update status
}
