package carbon

import (
	"context"
	"path"
	"slices"
	"strings"

	"stoa/store"
)

// The segments of a partitioned table have no directories of their own: their files lie in those of the partitions, NAME=VALUE below each other, and only
// the segment files say in which. Without these the names of the files tell the segment.

// maxPartitions is how deep directories of partitions are looked into.
const maxPartitions = 16

// partitionFiles calls give with each directory of partitions below the table's, with the values that its path says, and with the names of the files in it.
func partitionFiles(ctx context.Context, tree store.Tree, table string, give func(dir string, values, files []string)) error {
	var below func(dir string, values []string) error
	below = func(dir string, values []string) error {
		var dirs, files []string
		for info, err := range tree.List(ctx, dir) {
			if err != nil {
				return err
			}
			switch base := path.Base(info.Name); {
			case !info.Dir:
				files = append(files, base)
			case hiveDir.MatchString(base) && len(values) < maxPartitions:
				dirs = append(dirs, base)
			}
		}
		if len(values) > 0 && len(files) > 0 {
			give(dir, values, files)
		}
		for _, d := range dirs {
			if err := below(path.Join(dir, d), append(slices.Clone(values), d)); err != nil {
				return err
			}
		}
		return nil
	}
	return below(table, nil)
}

// partitionsOf are the directories of partitions that have files of a segment. They are looked for once, for all segments.
func (t *managed) partitionsOf(ctx context.Context, segment string) ([]place, error) {
	if t.partitions != nil {
		return t.partitions[segment], nil
	}
	found := map[string][]place{}
	err := partitionFiles(ctx, t.tree, t.path, func(dir string, values, files []string) {
		here := map[string]*place{}
		for _, f := range files {
			of, _ := segmentOf(f)
			index := strings.HasSuffix(f, indexExt) || strings.HasSuffix(f, mergedExt)
			if of == "" || !index && !strings.HasSuffix(f, dataExt) {
				continue
			}
			if here[of] == nil {
				here[of] = &place{dir: dir, values: values, indexes: []string{}, guessed: true}
			}
			if index {
				here[of].indexes = append(here[of].indexes, f)
			}
		}
		for of, p := range here {
			p.indexes = currentIndexes(p.indexes)
			found[of] = append(found[of], *p)
		}
	})
	if err != nil {
		return nil, err
	}
	t.partitions = found
	return found[segment], nil
}

// partitioned reports whether a directory has one of a partition with a data file in it, as the tables have that lost all their metadata.
func partitioned(ctx context.Context, tree store.Tree, dir string, depth int) bool {
	for info, err := range tree.List(ctx, dir) {
		switch {
		case err != nil:
			return false
		case info.Dir && depth < maxPartitions && hiveDir.MatchString(path.Base(info.Name)):
			return partitioned(ctx, tree, info.Name, depth+1) // they are all alike
		case !info.Dir && depth > 0 && strings.HasSuffix(info.Name, dataExt):
			return true
		}
	}
	return false
}
