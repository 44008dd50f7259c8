package text

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
	"stoa/region"
	"stoa/vec"
)

// maxReportedRows is the number of bad rows that verify reports one by one; the others are one finding.
const maxReportedRows = 1000

func isCorrupt(err error) bool { return errors.Is(err, fault.Corrupt) }

// verify is format.Format.Verify: it reads all rows. Its findings are those of codesOf.
func verify(ctx context.Context, t format.Target, o format.OpenOptions, name string,
	open func(context.Context, format.Target, format.OpenOptions) (format.Reader, error)) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		r, err := open(ctx, t, o)
		if err != nil {
			yield(finding(name, t.Name, err))
			return
		}
		defer r.Close()
		if info, err := t.Tree.Stat(ctx, t.Name); err == nil && info.Size == 0 && name != "jsonl" &&
			o.Opts["header"] != "false" {
			yield(check.Codes(codesOf(name)).Finding(name+".empty", fault.Span{Object: t.Name}, t.Name,
				"the file is empty, without even a header"))
			return
		}
		q := format.Query{}
		for i := range r.Columns() {
			q.Cols = append(q.Cols, i)
		}
		reported := 0
		rest := region.Finding{Code: name + ".row", Severity: region.Error, At: fault.Span{Object: t.Name},
			Part: t.Name}
		for _, err := range r.(format.Batcher).Batches(ctx, format.RowGroup{Part: t.Name, Rows: -1}, q, vec.Range{},
			nil) {
			if err == nil {
				continue
			}
			if f := finding(name, t.Name, err); f.Code != rest.Code || reported < maxReportedRows {
				reported++
				if !yield(f) {
					return
				}
			} else {
				if rest.Lost++; rest.Lost == 1 {
					rest.Rows[0] = f.Rows[0]
				}
				rest.Rows[1] = f.Rows[1]
			}
		}
		if rest.Lost > 0 {
			rest.Message = fmt.Sprintf("%d more rows do not fit, from row %d to row %d", rest.Lost, rest.Rows[0],
				rest.Rows[1]-1)
			yield(rest)
		}
	}
}

// finding returns the finding of an error.
func finding(name, part string, err error) region.Finding {
	f := check.Codes(codesOf(name)).Of(name+".unreadable", err, part)
	var one *rowError
	switch {
	case f.Class != 0:
	case errors.As(err, &one):
		f.Code, f.Rows, f.Lost = name+".row", [2]int64{one.row, one.row + 1}, 1
	case isCorrupt(err):
		f.Code = name + ".text"
	}
	return f
}
