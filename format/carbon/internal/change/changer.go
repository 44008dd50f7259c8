package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/table"
	"stoa/internal/sorted"
	"stoa/store"
)

// Changer changes CarbonData's tables as CarbonData does: under its locks, and committed by one rename of tablestatus
// or of the schema.
var Changer = format.Changer{
	Locate: locate,
	Create: func(_ context.Context, p format.TablePlace, sc *arrow.Schema, s format.TableSpec, dry bool) error {
		return createTable(p.Dir, p.Store,
			TableSpec{Schema: sc, SortColumns: s.SortColumns, Inverted: s.Inverted, LongStrings: s.LongStrings,
				Partition: s.Partition, BucketBy: s.BucketBy, Buckets: s.Buckets, Properties: s.Properties}, dry)
	},
	Drop: drop,
	Lock: func(ctx context.Context, p format.TablePlace) (func(), error) { return LockUpdate(ctx, p.Dir) },
	Append: func(ctx context.Context, p format.TablePlace, sc *arrow.Schema, o format.LoadOptions) (format.Load,
		error) {
		own, err := loadOptions(p, o)
		if err == nil {
			err = checkIndependent(ctx, p)
		}
		if err != nil {
			return nil, err
		}
		return asLoad(BeginLoad(ctx, p.Dir, sc, own))
	},
	CheckAppend: func(ctx context.Context, p format.TablePlace, sc *arrow.Schema, o format.LoadOptions) error {
		own, err := loadOptions(p, o)
		if err == nil {
			err = checkIndependent(ctx, p)
		}
		if err == nil {
			l, roots, err := newLoad(ctx, p.Dir, sc, own)
			if err != nil {
				return err
			}
			return l.checkCodes(roots)
		}
		return err
	},
	Misfits:   misfits,
	Alters:    loadAlters,
	CheckText: func(p format.TablePlace, column, text string) error { return CheckText(p.Dir, column, text) },
	Delete: func(ctx context.Context, p format.TablePlace, rows []format.RowsOfFile, l format.Load) (int64, error) {
		own, _ := l.(*Load)
		if err := checkIndependent(ctx, p); err != nil {
			return 0, err
		}
		return deleteRows(ctx, p, rows, own)
	},
	CheckDelete: checkDelete,
	DeleteSegments: func(ctx context.Context, p format.TablePlace, names []string, dry bool) error {
		if err := checkIndependent(ctx, p, names...); err != nil {
			return err
		}
		if !dry {
			return DeleteSegments(ctx, p.Dir, names)
		}
		s, err := readStatus(p.Dir)
		if err != nil {
			return err
		}
		return markDeleted(p.Dir, names)(&s)
	},
	PlanCompaction: func(p format.TablePlace, o format.CompactOptions) ([]format.Compaction, error) {
		if err := checkIndependent(context.Background(), p); err != nil {
			return nil, err
		}
		return planCompaction(p.Dir, o)
	},
	Compact: func(ctx context.Context, p format.TablePlace, sc *arrow.Schema, c format.Compaction,
		major bool) (format.Load, error) {
		return asLoad(BeginCompaction(ctx, p.Dir, sc, c.From, c.To, major, LoadOptions{tree: p.Tree}))
	},
	MergeIndexes: func(ctx context.Context, p format.TablePlace, segments []string, dry bool) (format.IndexMerge,
		error) {
		if err := checkReadable(ctx, p); err != nil {
			return format.IndexMerge{}, err
		}
		if dry {
			return mergeIndexes(ctx, p, segments, true)
		}
		return lockedMerge(ctx, p, segments)
	},
	AddColumn: func(ctx context.Context, p format.TablePlace, f arrow.Field, def *string, dry bool) error {
		if err := checkColumns(ctx, p); err != nil {
			return err
		}
		return addColumn(ctx, p.Dir, f, def, dry)
	},
	DropColumn: func(ctx context.Context, p format.TablePlace, name string, dry bool) error {
		if err := checkColumns(ctx, p); err != nil {
			return err
		}
		return dropColumn(ctx, p.Dir, name, dry)
	},
	AlterColumn: func(ctx context.Context, p format.TablePlace, c format.ColumnChange, dry bool) error {
		if err := checkColumns(ctx, p); err != nil {
			return err
		}
		return AlterColumn(ctx, p.Dir, c, dry)
	},
	SetProperties: func(ctx context.Context, p format.TablePlace, props map[string]*string, dry bool) error {
		if err := checkReadable(ctx, p); err != nil {
			return err
		}
		return SetProperties(ctx, p.Dir, props, dry)
	},
	Rename: func(ctx context.Context, p, to format.TablePlace, dry bool) error {
		if err := checkDescribed(ctx, p); err != nil {
			return err
		}
		return renameTable(ctx, p, to, dry)
	},
	Truncate: func(ctx context.Context, p format.TablePlace, dry bool) ([]string, error) {
		if err := checkIndependent(ctx, p); err != nil {
			return nil, err
		}
		return Truncate(ctx, p.Dir, dry)
	},
	AddPartition: func(ctx context.Context, p format.TablePlace, of format.PartitionValues, location string,
		dry bool) (string, error) {
		if err := checkIndependent(ctx, p); err != nil {
			return "", err
		}
		return AddPartition(ctx, p.Dir, of, location, dry)
	},
	DropPartition: func(ctx context.Context, p format.TablePlace, of format.PartitionValues, dry bool) (
		format.DroppedPartitions, error) {
		if err := checkIndependent(ctx, p); err != nil {
			return format.DroppedPartitions{}, err
		}
		return DropPartition(ctx, p.Dir, of, dry)
	},
	AddSegment: func(ctx context.Context, p format.TablePlace, s format.NewSegment, dry bool) (string, error) {
		if err := checkIndependent(ctx, p); err != nil {
			return "", err
		}
		return AddSegment(ctx, p.Dir, s, dry)
	},
	Clean: func(ctx context.Context, p format.TablePlace, dry bool) (format.Cleaned, error) {
		if err := checkReadable(ctx, p); err != nil {
			return format.Cleaned{}, err
		}
		if p.Tree == nil { // the locks tell which loads are running
			p.Kept = time.Time{}
		}
		return cleanTable(ctx, p.Dir, p.Kept, dry)
	},
	DisableDependents: disableDependents,
	Segments:          table.Segments,

	Positions:       map[string]string{"positions": "true"},
	PositionColumns: [2]string{datafile.FileColumn, datafile.RowColumn},
	External:        map[string]string{"external": "true"},
	Only: func(segments []string) map[string]string {
		return map[string]string{"segments": strings.Join(segments, ",")}
	},
	Stored: &stored,
}

// locate finds the directory of a table, and of its store, by a name: STORE#DATABASE.TABLE, STORE#TABLE for
// default.TABLE, or the table's own directory. The table must exist unless fresh is true, which means that it is about
// to be created.
func locate(ctx context.Context, tree store.Tree, name string, fresh bool) (format.TablePlace, error) {
	p, err := placeNamed(ctx, tree, name)
	if err == nil && !fresh && !isManaged(ctx, tree, p.Dir) {
		err = fmt.Errorf("%s is not a CarbonData table: %s is missing", name, filepath.Join(p.Dir, "Metadata",
			"schema"))
	}
	return p, err
}

func placeNamed(ctx context.Context, tree store.Tree, name string) (p format.TablePlace, err error) {
	store, table, ok := strings.Cut(name, "#")
	if !ok {
		return format.TablePlace{Dir: strings.TrimSuffix(name, "/")}, nil
	}
	if store == "" {
		store = "."
	}
	parts := strings.Split(strings.ToLower(table), ".")
	switch {
	case len(parts) > 2 || slices.Contains(parts, "") || strings.ContainsAny(table, `/\`):
		return p, fault.Invalidf("%s: expected STORE#DATABASE.TABLE", name)
	case len(parts) == 2:
		return format.TablePlace{Dir: filepath.Join(store, parts[0], parts[1]), Store: store}, nil
	}
	if dir := filepath.Join(store, parts[0]); isManaged(ctx, tree, dir) { // Spark's default database
		return format.TablePlace{Dir: dir, Store: store}, nil
	}
	return format.TablePlace{Dir: filepath.Join(store, "default", parts[0]), Store: store}, nil
}

// isManaged reports whether a directory is that of a table with a schema.
func isManaged(ctx context.Context, tree store.Tree, dir string) bool {
	_, err := tree.Stat(ctx, filepath.ToSlash(filepath.Join(dir, "Metadata", "schema")))
	return err == nil
}

// loadOptions converts the options of a load. Errors are Invalid.
func loadOptions(p format.TablePlace, o format.LoadOptions) (own LoadOptions, err error) {
	own = LoadOptions{Opts: o.Opts, Tasks: o.Tasks, Check: o.Check, Overwrite: o.Overwrite, Partition: o.Partition,
		Set: o.Set, tree: p.Tree}
	if o.Dictionary != "" {
		if own.Dictionary, err = ParseDictionaryWay(o.Dictionary); err != nil {
			return own, err
		}
		own.Dictionary.Rows = o.Again
	}
	return own, nil
}

// asLoad returns a nil format.Load for a nil *Load.
func asLoad(l *Load, err error) (format.Load, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// drop removes a table or, with dry, only counts what would be removed.
func drop(ctx context.Context, p format.TablePlace, dry bool) (out format.Dropped, err error) {
	if err := isTable(p.Dir); err != nil {
		return out, err
	}
	if err := checkIdle(p.Dir); err != nil {
		return out, err
	}
	if err := checkAlone(p); err != nil {
		return out, err
	}
	out.Dir = p.Dir
	err = filepath.WalkDir(p.Dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out.Files++
		info, err := d.Info()
		if err == nil {
			out.Bytes += info.Size()
		}
		return err
	})
	if dry {
		return out, err
	}
	return out, DropTable(ctx, p.Dir, p.Store) // even if files were added or removed during the count
}

// misfits is format.Changer.Misfits. Values of columns with a global dictionary are checked only if they are texts of
// another type.
func misfits(ctx context.Context, p format.TablePlace, sc *arrow.Schema, o format.LoadOptions) (
	func(b arrow.RecordBatch) []format.Misfit, error) {
	own, err := loadOptions(p, o)
	if err != nil {
		return nil, err
	}
	l, roots, err := newLoad(ctx, p.Dir, sc, own)
	if err != nil {
		return nil, err
	}
	return func(b arrow.RecordBatch) (out []format.Misfit) {
		for i, r := range roots {
			if at := l.fields[i]; at >= 0 && at < int(b.NumCols()) {
				out = append(out, l.misfitsIn(r, b, at)...)
			} else if at >= 0 { // computed
				for i, why := 0, l.sourceless(b); i < int(b.NumRows()); i++ {
					if s := why(i); s != "" {
						out = append(out, format.Misfit{Row: i, Column: r.Name, Reason: s})
					}
				}
			}
		}
		if o.DryRun {
			out = append(out, l.misplaced(b, out)...)
		}
		sorted.StablyBy(out, func(a, b format.Misfit) int { return a.Row - b.Row })
		return out
	}, nil
}

// misfitsIn returns the misfits in a column of a batch. It checks single values only if the column cannot be added as a
// whole.
func (l *Load) misfitsIn(r *schema.Column, b arrow.RecordBatch, at int) (out []format.Misfit) {
	n := int(b.NumRows())
	part := l.schema.Partition != nil && slices.ContainsFunc(l.schema.Partition.Columns,
		func(c layout.ColumnSchema) bool { return c.ID == r.ID })
	if !part && l.fits(r, b.Column(at), 0, n) == nil {
		return nil
	}
	for i := range n {
		err := l.fits(r, b.Column(at), i, i+1)
		if err == nil && part {
			_, err = l.partitionText(b, i, r.ColumnSchema)
		}
		if err != nil {
			why := err.Error()
			if e := (*fault.Error)(nil); errors.As(err, &e) {
				why = e.Reason
			}
			out = append(out, format.Misfit{Row: i, Column: r.Name, Reason: why})
		}
	}
	return out
}

// fits returns an error if the entries [from, to) of an array are not all values of a column.
func (l *Load) fits(r *schema.Column, a arrow.Array, from, to int) error {
	if schema.HasGlobalCodes(r) {
		for i := from; i < to; i++ {
			if !a.IsNull(i) && !r.Type.Complex() && page.NeedsConversion(r, a.DataType()) {
				if _, err := page.Convert(r, a, i); err != nil {
					return err
				}
			}
		}
		return nil
	}
	x := page.NewCells(r)
	if err := x.Add(r, a, from, to, &l.wo); err != nil || l.wo.Merge {
		return err
	}
	if err := x.Check(r); err != nil {
		return err
	}
	return x.CheckEmptyBytes(r)
}
