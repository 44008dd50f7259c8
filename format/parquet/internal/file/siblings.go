package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/vec"
)

// PartName returns the file name of part n in a table's directory.
func PartName(n int) string { return fmt.Sprintf("part-%05d.parquet", n) }

var anyPart = regexp.MustCompile(`^part-\d{5,}\.parquet$`)

// anyBackup matches the directory of a Kudu backup, preceded by that of its table.
var anyBackup = regexp.MustCompile(`^[0-9a-f]{32}-[^/]+/\d+$`)

// MissingSiblings returns an error for each neighbouring part of the table that is missing. A file that was renamed is
// read as a table of its own.
func (r *File) MissingSiblings(ctx context.Context) (missing []error) {
	k := slices.IndexFunc(r.Footer.KeyValues,
		func(p meta.KeyValue) bool { return p.Key == meta.PartKey && p.Value != nil })
	base := path.Base(r.Target.Name)
	if k < 0 || r.Target.Tree == nil || r.Target.At != (vec.Range{}) || !anyPart.MatchString(base) {
		return nil
	}
	var p meta.Part
	where := "key_value_metadata[" + meta.PartKey + "]"
	if err := json.Unmarshal([]byte(*r.Footer.KeyValues[k].Value), &p); err != nil {
		return []error{fault.Corruptf(r.FooterAt, where, "it cannot be read: %v", err)}
	}
	if base != PartName(p.Number) {
		return []error{fault.Corruptf(r.FooterAt, where, "the file is part %d of its table, but its name says another",
			p.Number)}
	}
	dir := path.Dir(r.Target.Name)
	in := path.Join(path.Base(path.Dir(dir)), path.Base(dir))
	if p.Of != "" && in != p.Of && anyBackup.MatchString(in) {
		missing = append(missing, fault.Corruptf(r.FooterAt, where, "the file is of the backup %s, and lies among "+
			"those of %s", p.Of, in))
	}
	for _, n := range []int{p.Number - 1, p.Number + 1} {
		if n < 0 || n > p.Number && p.Last {
			continue
		}
		name := path.Join(path.Dir(r.Target.Name), PartName(n))
		if _, err := r.Target.Tree.Stat(ctx, name); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, fault.Corruptf(r.FooterAt, where, "the table has a part %d, but %s is "+
				"missing, and its rows with it", n, name))
		}
	}
	return missing
}
