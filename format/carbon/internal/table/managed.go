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

// Managed is a table with a directory of its own: schema, status, segments.
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
	found      map[string]*Part // by name; nil: not looked yet
	list       []*Part
	unreadable map[string]error // segments of which something is gone, by what stands for them among the parts

	Guessed *guessedDeletes // recovering: the update status is not the one that tablestatus names

	partitions map[string][]Place // recovering: directories of partitions by segment; nil: not looked yet
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

// Layout is how the schema has the rows laid out.
func (t *Managed) Layout() format.Layout {
	l := format.Layout{Buckets: int(t.TableSchema.Buckets), Sorted: t.Table.Layout().Sorted}
	for i := range t.TableSchema.BucketBy {
		l.BucketBy = append(l.BucketBy, t.TableSchema.BucketBy[i].Name)
	}
	// of the other kinds no directory says the value
	if p := t.TableSchema.Partition; p != nil && p.Kind == layout.NativeHive {
		for i := range p.Columns {
			l.Partitions = append(l.Partitions, p.Columns[i].Name)
		}
	}
	return l
}

// note keeps a finding.
func (t *Managed) note(code string, at fault.Span, format string, args ...any) {
	t.noting.Lock()
	defer t.noting.Unlock()
	f := layout.Codes.Finding(code, at, t.Path, fmt.Sprintf(format, args...))
	f.Lost = 0 // the rows of what is not read are shown by whoever reads
	t.Notes = append(t.Notes, f)
}

// Findings is what was odd about the indexes of the segments that were looked into.
func (t *Managed) Findings() []region.Finding {
	t.noting.Lock()
	defer t.noting.Unlock()
	return slices.Clone(t.Notes)
}

// reportOnce says, when recovering, what was done about the file name, which may be asked for again.
func (t *Managed) reportOnce(name string, f region.Finding) {
	if t.saved.First(name) {
		t.saved.Emit(f)
	}
}

// tolerate says, when recovering, of a delete delta that cannot be used, once for each name, and lets the rows
// come back. Else the error stays.
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

// placeOf is where an error says that the file name is damaged.
func placeOf(err error, name string) fault.Span {
	if e := (*fault.Error)(nil); errors.As(err, &e) && e.At.Object == name {
		return e.At
	}
	return fault.Span{Object: name}
}

// Place is a directory with files of a segment.
type Place struct {
	Dir     string
	Indexes []string // names of its index files, as the segment file says; nil: look
	values  []string // of the partition columns, name=value each
	guessed bool     // recovering: nothing says that these are all directories of the segment
	dropped bool     // recovering: the damaged segment file still says that this partition was dropped
}

// guessedDeletes is by which rule delete deltas hold that no update status names: those that are younger than
// the one that is there.
type guessedDeletes struct {
	after, until int64           // times of deltas
	unlisted     map[string]bool // segments that have deletes, and no entry in the update status
}
