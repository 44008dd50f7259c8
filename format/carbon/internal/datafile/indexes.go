package datafile

import (
	"context"
	"iter"
	"path"
	"strings"

	"stoa/format/carbon/internal/layout"
)

// indexes reads the index files in the directory of f; .carbonindexmerge only if merged is true. With an error it also
// yields the entries read before it. Files that cannot be opened are skipped.
func (f *DataFile) indexes(ctx context.Context, merged bool) iter.Seq2[[]layout.IndexFile, error] {
	return func(yield func([]layout.IndexFile, error) bool) {
		for info, err := range f.Tree.List(ctx, path.Dir(f.At.Object)) {
			if err != nil {
				return
			}
			isMerged := strings.HasSuffix(info.Name, layout.MergedExt)
			if isMerged && !merged || !isMerged && !strings.HasSuffix(info.Name, layout.IndexExt) {
				continue
			}
			o, err := layout.OpenObject(ctx, f.Tree, info.Name, f.Limits)
			if err != nil {
				continue
			}
			if !yield(o.ReadIndex(ctx, isMerged, nil)) {
				return
			}
		}
	}
}
