package store

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strings"
)

// The names of what a run that writes a large table has recorded, for another run that goes on with it.
const (
	RecordsDir  = "_stoa"   // the directory of the records, in that of the table
	RecordsMark = "begun"   // an object in it that says that a run has begun
	RecordExt   = ".record" // not .json, as which what lies beside a table is read
)

// tableFile matches the names, within a table, of its data files, files of deletes, manifests and their lists, as stoa
// writes them.
var tableFile = regexp.MustCompile(`(^|/)\d{5}-[0-9a-f]{8}\.parquet$|^metadata/[^/]*\.avro$|` +
	`^data/(\d{5}-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-deletes\.(parquet|puffin)$`)

// TableFile reports whether a name, relative to the directory of a table of Iceberg or Delta, is one that stoa gives a
// file before it is part of the table.
func TableFile(rel string) bool { return tableFile.MatchString(rel) }

// TableAt returns where the # of a name PLACE#TABLE is, -1 if there is none. Both parts may have others: the place is
// the longest that exists, or all before the last # if none does. exists is not called for a name with one.
func TableAt(name string, exists func(place string) bool) int {
	last := strings.LastIndexByte(name, '#')
	if strings.IndexByte(name, '#') == last {
		return last
	}
	for i := last; i >= 0; i = strings.LastIndexByte(name[:i], '#') {
		if exists(name[:i]) {
			return i
		}
	}
	return last
}

// TableIn is TableAt for the places of a tree.
func TableIn(ctx context.Context, t Tree, name string) int {
	return TableAt(name, func(place string) bool {
		_, err := t.Stat(ctx, place)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
