package write

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/parquet/internal/meta"
)

// Paths returns the dotted paths of the columns of a schema in a file, as options name them.
func Paths(sc *arrow.Schema) ([]string, error) {
	fields := sc.Fields()
	for i, f := range fields {
		f, _ = meta.Filled(f)
		fields[i], _ = meta.Grouped(f)
	}
	tree, err := treeOf(arrow.NewSchema(fields, nil))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, l := range treeLeaves(tree) {
		out = append(out, l.dotted())
	}
	return out, nil
}
