package output

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/cells"
)

// markdown writes rows as a Markdown table: a line per row, with values as cat shows them.
type markdown struct {
	w    io.Writer
	buf  []byte
	cell []byte
}

// appendEscaped appends text so that it stays in one cell, and shows as it is: what Markdown would read as a mark, a
// link or HTML is escaped.
func appendEscaped(to []byte, text string) []byte {
	word := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] >= 0x80 || text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z' ||
			text[i] >= '0' && text[i] <= '9')
	}
	for i := range len(text) {
		switch c := text[i]; c {
		case '\n':
			to = append(to, "<br>"...)
		case '\r':
		case '<':
			to = append(to, "&lt;"...)
		case '&':
			to = append(to, "&amp;"...)
		case '_':
			if !word(i-1) || !word(i+1) { // within a word it is no mark
				to = append(to, '\\')
			}
			to = append(to, c)
		case '|', '\\', '*', '`', '[', '~':
			to = append(to, '\\', c)
		default:
			to = append(to, c)
		}
	}
	return to
}

func newMarkdown(w io.Writer, sc *arrow.Schema) *markdown {
	m := &markdown{w: w}
	rule := ""
	for _, f := range sc.Fields() {
		m.buf = appendEscaped(append(m.buf, "| "...), f.Name)
		m.buf = append(m.buf, ' ')
		side := " --- "
		if arrow.IsInteger(f.Type.ID()) || arrow.IsFloating(f.Type.ID()) || arrow.IsDecimal(f.Type.ID()) {
			side = " ---: "
		}
		rule += "|" + side
	}
	m.buf = append(m.buf, "|\n"+rule+"|\n"...)
	return m
}

func (m *markdown) Write(b arrow.RecordBatch) error {
	for i := range int(b.NumRows()) {
		for _, c := range b.Columns() {
			m.cell = cells.AppendCell(m.cell[:0], c, i)
			m.buf = appendEscaped(append(m.buf, "| "...), string(m.cell))
			m.buf = append(m.buf, ' ')
		}
		m.buf = append(m.buf, "|\n"...)
		if len(m.buf) > 64<<10 {
			if err := m.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *markdown) flush() error {
	_, err := m.w.Write(m.buf)
	m.buf = m.buf[:0]
	return err
}

func (m *markdown) Close() error { return m.flush() }
