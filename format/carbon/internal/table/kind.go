package table

import (
	"context"
	"path"
	"strings"

	"stoa/format/carbon/internal/layout"
	"stoa/store"
)

// Kind classifies a place.
type Kind uint8

const (
	KindNone     Kind = iota
	KindFile          // a data file
	KindIndex         // .carbonindex
	KindMerged        // .carbonindexmerge
	KindDict          // .dict
	KindDictMeta      // .dictmeta
	KindSort          // .sortindex
	KindTable         // a directory with Metadata/schema, or with segments
	KindFiles         // a directory of data files: a segment, or a table of the SDK
	KindStore         // a directory of databases and tables
)

// ByName returns the kind that a file's name implies.
func ByName(name string) Kind {
	for ext, k := range map[string]Kind{layout.DataExt: KindFile, layout.IndexExt: KindIndex,
		layout.MergedExt: KindMerged, ".dict": KindDict, ".dictmeta": KindDictMeta, ".sortindex": KindSort} {
		if strings.HasSuffix(name, ext) {
			return k
		}
	}
	return KindNone
}

// isTable reports whether a directory is a table: it has a schema or, if the schema was lost, segments. An error means
// that the store could not answer.
func isTable(ctx context.Context, tree store.Tree, dir string) (bool, error) {
	for _, name := range []string{"Metadata/schema", "Fact/Part0", "Metadata/segments"} {
		info, err := tree.Stat(ctx, path.Join(dir, name))
		switch {
		case err == nil && info.Dir == (name != "Metadata/schema"):
			return true, nil
		case store.Failing(err):
			return false, err
		}
	}
	return false, nil
}

// holdsTable reports whether a table lies directly below a directory.
func holdsTable(ctx context.Context, tree store.Tree, dir string) (bool, error) {
	for child, err := range tree.List(ctx, dir) {
		if err != nil {
			return false, err
		}
		if !child.Dir {
			continue
		}
		if is, err := isTable(ctx, tree, child.Name); err != nil || is {
			return is, err
		}
	}
	return false, nil
}
