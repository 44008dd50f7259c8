package table

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	Status      string // name of tablestatus, or of its current version
	Versioned   bool   // tablestatus has versions, see CurrentStatus
	Loads       []status.Load
	Updates     string // name of the update status; "" if there is none
	UpdatesNull bool   // the update status is the JSON null
	changes     map[string]*status.Update
	read        []status.Load // what tablestatus had when it was read last

	noting sync.Mutex // guards Notes
	Notes  []region.Finding

	once       sync.Mutex       // guards the following
	found      map[string]*Part // parts by name; nil: not listed yet
	list       []*Part
	unreadable map[string]error // errors of segments with missing files, by the name of the part that stands for them

	Guessed *guessedDeletes // in recovery: the update status is not the one that tablestatus names

	final     bool        // whoever scans the table takes its rows as they are: none was deleted at opening
	elsewhere atomic.Bool // a location was stated as a full address: it may be outside of Path

	partitions map[string][]Place // in recovery: directories of partitions by segment; nil: not listed yet
}

// facts sets what `stoa meta` prints of the table.
func (t *Managed) facts() {
	add := func(k string, v any) { t.meta = append(t.meta, format.KeyValue{Key: k, Value: fmt.Sprint(v)}) }
	add("format", "CarbonData table")
	t.TableSchema.Facts(add)
	if d := t.TableSchema.Dependents(); len(d) > 0 {
		add(format.Dependents, strings.Join(d, "; "))
	}
	for i := range t.Loads {
		l := &t.Loads[i]
		add("segment."+l.Name, l.Summary())
	}
	if t.Versioned {
		add("table_status", path.Base(t.Status))
	}
	if t.Updates != "" {
		add("update_status", path.Base(t.Updates))
	}
}

// Layout is the layout of rows that the schema declares.
func (t *Managed) Layout() format.Layout {
	l := format.Layout{Buckets: int(t.TableSchema.Buckets), Sorted: t.Table.Layout().Sorted,
		Properties: t.TableSchema.Properties}
	if l.Buckets > 0 {
		l.BucketHash = "spark" // that of its partitions
	}
	for i := range t.TableSchema.BucketBy {
		l.BucketBy = append(l.BucketBy, t.TableSchema.BucketBy[i].Name)
	}
	// other kinds of partitions have no directories
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
	f.Lost = 0 // lost rows are counted when they are read
	t.Notes = append(t.Notes, f)
}

// Findings implements format.Finder: it returns the findings about the segments listed so far.
func (t *Managed) Findings() []region.Finding {
	t.noting.Lock()
	defer t.noting.Unlock()
	return slices.Clone(t.Notes)
}

// reportOnce reports, in recovery, a finding about the file name; only the first finding for each name is reported.
func (t *Managed) reportOnce(name string, f region.Finding) {
	if t.saved.First(name) {
		t.saved.Emit(f)
	}
}

// tolerate handles the error of a delete delta that cannot be used. In recovery, if err is damage, it reports it once
// per name and returns nil. Otherwise it returns err.
func (t *Managed) tolerate(name string, err error) error {
	if err == nil || t.saved == nil || !errors.Is(err, fault.Corrupt) {
		return err
	}
	if e := (*fault.Error)(nil); errors.As(err, &e) {
		t.reportOnce(name, layout.Findingf("carbon.delete.damaged", e.At, t.Path,
			"%v: it is not applied, and the rows that it deletes come back", err))
	}
	return nil
}

// segmentFileOf returns the path of a load's segment file.
func (t *Managed) segmentFileOf(l *status.Load) string {
	return path.Join(t.Path, "Metadata", "segments", l.Segment)
}

// placeOf returns the place of err if it is in the file name, else the whole file.
func placeOf(err error, name string) fault.Span {
	if e := (*fault.Error)(nil); errors.As(err, &e) && e.At.Object == name {
		return e.At
	}
	return fault.Span{Object: name}
}

// Place is a directory with files of a segment.
type Place struct {
	Dir     string
	Indexes []string // index files as listed in the segment file; nil: not listed
	values  []string // of the partition columns, name=value each
	guessed bool     // in recovery: the segment may have had other directories, too
	dropped bool     // in recovery: the damaged segment file marks this partition as dropped
}

// guessedDeletes decides which delete deltas apply although no update status names them. They are the deltas newer than
// the update status that recovery found.
type guessedDeletes struct {
	after, until int64           // bounds of the times of applied deltas
	unlisted     map[string]bool // segments that have deletes but no entry in the update status
}
