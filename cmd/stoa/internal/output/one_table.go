package output

import (
	"io"
	"slices"

	"stoa/cmd/stoa/internal/display"
)

// narrowKey is the minimum width of the first column of a table that is kept in one piece.
const narrowKey = 12

// writeOne writes a report that is too wide for the terminal as one table nevertheless: a long name has a line of its
// own, before the rest of its row, and remarks are below their row. It reports false, and writes nothing, if the other
// columns alone are too wide.
func (r *Report) writeOne(w io.Writer, shown, widths []int, style display.TableStyle) (bool, error) {
	if len(shown) < 2 || style.Width <= 0 {
		return false, nil
	}
	table, remarks := shown, -1
	if last := shown[len(shown)-1]; r.Cols[last].Below {
		table, remarks = shown[:len(shown)-1], last
	}
	widths = slices.Clone(widths)
	room := style.Width
	for _, k := range table[1:] {
		room -= len(display.Gutter) + widths[k]
	}
	key := table[0]
	if room < narrowKey {
		return false, nil
	}
	head := r.head()
	widths[key] = display.DisplayWidth(head[key])
	for _, row := range r.Rows {
		if n := display.DisplayWidth(row[key]); n <= room {
			widths[key] = max(widths[key], n)
		}
	}
	var b []byte
	if !r.Bare {
		b = r.line(b, head, table, widths, style.Colour, false)
	}
	for _, row := range r.Rows {
		if display.DisplayWidth(row[key]) > widths[key] {
			for _, s := range display.Folded(row[key], style.Width, 0) {
				b = append(append(b, s...), '\n')
			}
			row = slices.Clone(row)
			row[key] = ""
		}
		b = r.line(b, row, table, widths, false, false)
		if remarks < 0 || row[remarks] == "" {
			continue
		}
		indent := display.Indent(2)
		for _, s := range display.Folded(row[remarks], style.Width-len(indent), 0) {
			b = append(append(append(b, indent...), s...), '\n')
		}
	}
	_, err := w.Write(b)
	return true, err
}
