package change

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/store"
)

// readStatus reads tablestatus, or returns the error with which readers refuse the table.
func readStatus(dir string) (status.StatusFile, error) {
	if _, err := ReadTableSchema(dir); err != nil {
		return nil, err
	}
	return status.ReadEntries(status.StatusPath(dir))
}

// changeStatus changes tablestatus, provided that readers accept it, see status.ChangeStatus.
func changeStatus(ctx context.Context, dir string, change func(s *status.StatusFile) error) error {
	accept := func() error {
		_, err := ReadTableSchema(dir)
		return err
	}
	return status.ChangeStatus(ctx, dir, accept, change)
}

// ReadTableSchema reads the schema of the table in dir. Errors are those of opening the table. Locations outside of it
// are no error here: whether they may be followed is decided by checkReadable, before a change begins.
func ReadTableSchema(dir string) (*layout.TableSchema, error) {
	m, err := table.OpenManaged(context.Background(), store.Local{}, filepath.ToSlash(dir), format.OpenOptions{},
		table.ReadOptions{Bucket: -1, Zone: time.UTC, External: true}, nil)
	if err != nil {
		return nil, err
	}
	if m.Versioned {
		return nil, fault.Unsupportedf(fault.Span{Object: m.Status}, "", "tablestatus has versions, and which one is "+
			"the current one is written in Hive's metastore: the table can be read, but not changed")
	}
	return &m.TableSchema, nil
}

// openManaged opens the table at p, restricted to the named segments if there are any.
func openManaged(ctx context.Context, p format.TablePlace, segments ...string) (*table.Managed, error) {
	o := table.ReadOptions{Bucket: -1, Zone: time.UTC, External: p.External, Segments: segments}
	return table.OpenManaged(ctx, treeOf(p.Tree), filepath.ToSlash(p.Dir), format.OpenOptions{}, o, nil)
}

// treeOf returns a tree; nil is the local file system.
func treeOf(t store.Tree) store.Tree {
	if t == nil {
		return store.Local{}
	}
	return t
}

// stored says what a table's files are in a remote store. CarbonData replaces the schema and tablestatus as wholes; a
// dictionary grows until its .dictmeta says so.
var stored = format.StoredTable{
	Whole: func(name string) bool { return strings.HasPrefix(name, "Metadata/") },
	Local: func(name string) bool {
		return strings.HasPrefix(name, "LockFiles/") || strings.HasPrefix(path.Base(name), store.TempPrefix)
	},
	Rank: func(name string) int {
		switch {
		case name == "Metadata/schema": // it makes the directory a table
			return 5
		case name == "Metadata/tablestatus":
			return 4
		case name == "Metadata/tablestatus.history":
			return 3
		case strings.HasSuffix(name, dict.DictMetaExt):
			return 2
		case strings.HasSuffix(name, dict.DictExt):
			return 1
		}
		return 0
	},
	Held: func(name string) bool { return strings.HasPrefix(name, "LockFiles/Segment_") },
	Locks: []string{"LockFiles/" + status.LockCompaction, "LockFiles/" + status.LockUpdate,
		"LockFiles/" + status.LockSchema, "LockFiles/" + status.LockStatus},
}

// checkReadable returns the error with which readers refuse the table; such a table must not be changed. See
// table.Managed.CheckReadable. The segments in except, which are about to be removed, are not read.
func checkReadable(ctx context.Context, p format.TablePlace, except ...string) error {
	t, err := openManaged(ctx, p)
	if err == nil && len(except) > 0 {
		var left []string
		for i := range t.Loads {
			if l := &t.Loads[i]; l.Counts() && !slices.Contains(except, l.Name) {
				left = append(left, l.Name)
			}
		}
		if left == nil {
			return nil
		}
		t, err = openManaged(ctx, p, left...)
	}
	if err != nil {
		return err
	}
	return t.CheckReadable(ctx)
}

// LockUpdate excludes other deletes, updates and compactions until unlock is called. Errors are those of status.Lock.
func LockUpdate(ctx context.Context, dir string) (unlock func(), err error) {
	var all []func()
	undo := func() {
		for _, f := range all {
			f()
		}
	}
	for _, name := range []string{status.LockUpdate, status.LockCompaction} {
		u, err := status.Lock(ctx, dir, name, status.LockWait)
		if err != nil {
			undo()
			return nil, err
		}
		all = append(all, u)
	}
	return undo, nil
}
