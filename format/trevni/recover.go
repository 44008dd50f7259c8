package trevni

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// recoverFile reads what is whole of a file. Nothing in a Trevni file is written twice but this: columns lie one behind the other, so
// that a start that is wrong can be found again; and every column counts the rows. What a scan can lose without help (blocks
// that are damaged or cut off) the ordinary reader loses as well.
func recoverFile(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	opts, err := parseOptions(o.Opts)
	if err != nil {
		return nil, nil, err
	}
	r := &recovery{ctx: ctx, part: tg.Name}
	f, err := openTarget(ctx, tg, o)
	if err != nil {
		if f, err = r.magic(tg, o, err); err != nil {
			return nil, r.found, err
		}
	}
	r.f = f
	r.starts()
	if err := r.rows(); err != nil {
		f.src.Close()
		return nil, r.found, err
	}
	t, err := newTable(ctx, tg, f, opts)
	if err != nil {
		f.src.Close()
		return nil, r.found, err
	}
	r.lost(t)
	return t, r.found, nil
}

// recovery is what recoverFile finds out.
type recovery struct {
	ctx   context.Context
	part  string
	f     *file
	found []region.Finding
}

func (r *recovery) tell(code string, at fault.Span, rows [2]int64, column, format string, args ...any) {
	f := region.Finding{Code: code, Severity: severityOf(code), At: at, Part: r.part, Column: column, Rows: rows, Message: fmt.Sprintf(format, args...)}
	if f.Severity == region.Error {
		if f.Lost = -1; rows[0] >= 0 && rows[1] >= 0 {
			f.Lost = rows[1] - rows[0]
		}
	}
	r.found = append(r.found, f)
}

// magic tries again with the usual magics where the file's own is none. failed is what was wrong.
func (r *recovery) magic(tg format.Target, o format.OpenOptions, failed error) (*file, error) {
	for _, version := range []byte{2, 1} {
		src, base, size, err := tg.Open(r.ctx)
		if err != nil {
			return nil, failed
		}
		at := fault.Span{Object: tg.Name, Off: base, Len: size}
		f, err := openFile(r.ctx, withMagic{src, base, version}, at, o)
		if err == nil && len(f.header.Columns) > 0 {
			f.src = src
			r.tell("trevni.recovered", at.Sub(0, 4), [2]int64{0, f.header.Rows}, "", "the magic is damaged; the file is read as version %d", version)
			return f, nil
		}
		src.Close()
	}
	return nil, failed
}

// starts looks for columns whose start is not where the column before ends, and has no descriptors that could be read.
func (r *recovery) starts() {
	f := r.f
	end := f.header.size
	f.budget += f.at.Len // for what lies where a wrong start points to
	for i := range f.header.Columns {
		c := &f.header.Columns[i]
		cb, err := f.blocks(r.ctx, i)
		if err == nil && (c.MaxRep > 0 || cb.rows == f.header.Rows) {
			end = cb.end
			continue
		}
		if c.Start == end {
			if err != nil {
				return // where the next column begins nothing tells
			}
			end = cb.end
			continue
		}
		was := c.Start
		f.restart(i, end)
		if cb, err = f.blocks(r.ctx, i); err != nil || c.MaxRep == 0 && cb.rows != f.header.Rows {
			f.restart(i, was)
			return
		}
		end = cb.end
		r.tell("trevni.recovered", f.at.Sub(0, f.header.size), [2]int64{0, f.header.Rows}, c.Name, "column %q does not start at %d, but at %d", c.Name, was, c.Start)
	}
}

// rows believes the columns where none agrees with the header: the greatest number that one has. It fails if nothing can be read.
func (r *recovery) rows() error {
	f := r.f
	failed := f.checkRows(r.ctx)
	if failed == nil || !isFault(failed) {
		return failed
	}
	rows := int64(-1)
	for i := range f.header.Columns {
		if cb, err := f.blocks(r.ctx, i); err == nil && f.header.Columns[i].MaxRep == 0 {
			rows = max(rows, cb.rows)
		}
	}
	if rows < 0 {
		return failed
	}
	r.tell("trevni.recovered", f.at.Sub(4, 8), [2]int64{0, rows}, "", "no column has the %d rows that the header says; the most is %d", f.header.Rows, rows)
	f.header.Rows = rows
	return nil
}

// lost tells what is known to be lost before anything is read.
func (r *recovery) lost(t *table) {
	f := r.f
	for i := range f.header.Columns {
		c := &f.header.Columns[i]
		cb, err := f.blocks(r.ctx, i)
		if err != nil {
			r.tell("trevni.column.damaged", f.at.Sub(min(max(c.Start, 0), f.at.Len), 0), [2]int64{0, f.header.Rows}, c.Name, "%s", reason(err))
			continue
		}
		for k := range cb.blocks {
			if b := &cb.blocks[k]; b.lost != nil {
				rows := [2]int64{b.row, b.row + b.rows}
				if c.MaxRep > 0 {
					rows = [2]int64{-1, -1}
				}
				r.tell("trevni.block.cut", b.desc, rows, c.Name, "%s", reason(b.lost))
			}
		}
	}
}

// reason is what an error says is wrong: a finding has its place by itself.
func reason(err error) string {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	if e.Cause != nil {
		return strings.TrimPrefix(e.Reason+": "+e.Cause.Error(), ": ")
	}
	return e.Reason
}

// withMagic is a file as if it had the magic of a version.
type withMagic struct {
	store.Source
	base    int64
	version byte
}

func (s withMagic) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := s.Source.ReadAt(ctx, p, off)
	for i, b := range []byte{'T', 'r', 'v', s.version} {
		if k := s.base + int64(i) - off; k >= 0 && k < int64(n) {
			p[k] = b
		}
	}
	return n, err
}
