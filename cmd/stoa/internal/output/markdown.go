package output

import (
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/cells"
)

// markdown writes rows as a Markdown table: a line per row, with values as cat shows them.
type markdown struct {
	w    io.Writer
	buf  []byte
	cell []byte
}

// escapes keeps a cell on one line and in one column.
var escapes = strings.NewReplacer("|", `\|`, "\n", "<br>", "\r", "")

func newMarkdown(w io.Writer, sc *arrow.Schema) *markdown {
	m := &markdown{w: w}
	rule := ""
	for _, f := range sc.Fields() {
		m.buf = append(append(m.buf, "| "...), escapes.Replace(f.Name)...)
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
			m.buf = append(append(m.buf, "| "...), escapes.Replace(string(m.cell))...)
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
