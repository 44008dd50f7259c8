package convert

import (
	"cmp"
	"fmt"
	"strings"

	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/ls"
	"stoa/cmd/stoa/internal/report"
)

// page is the report as HTML.
type page struct{ report.Page }

// HTML implements report.Doc.
func (d *rescueDoc) HTML() ([]byte, error) {
	var p page
	class := "good"
	if !d.Whole {
		class = "bad"
	}
	p.Put(report.PageHead, "Rescue of "+strings.Join(d.Roots, ", "))
	p.Put("<h1 class=\"%s\">%s</h1>\n", class, d.verdict())
	p.Put("<dl><dt>written</dt><dd>%s to <code>%s</code> as %s</dd><dt>known to be %s</dt><dd>%s</dd>\n",
		display.Count(d.rows(), "row"), d.Output, d.To, d.lostWord(), d.lostRows())
	for _, r := range d.Roots {
		p.Put("<dt>root</dt><dd><code>%s</code></dd>\n", r)
	}
	p.Put("<dt>begun</dt><dd>%s, %s seconds</dd>\n", d.Began.Format("2006-01-02T15:04:05Z07:00"),
		fmt.Sprintf("%.1f", d.Seconds))
	if d.At != "" {
		p.Put("<dt>as of</dt><dd>%s</dd>\n", d.At)
	}
	for _, w := range d.Why {
		p.Put("<dt class=\"bad\">why not all</dt><dd>%s</dd>\n", w)
	}
	p.Put("</dl>\n<h2>Tables</h2>\n<table>\n<tr><th>table</th><th class=\"n\">rows written</th>"+
		"<th class=\"n\">rows %s</th><th>state</th><th>output</th></tr>\n", d.lostWord())
	for _, t := range d.Tables {
		p.table(t)
	}
	p.Put("</table>\n")
	p.others(d)
	p.files(d)
	p.Put("</body>\n</html>\n")
	return p.Bytes(), nil
}

// table writes a line, and below it one with everything that is known about the table.
func (p *page) table(t *rescuedTable) {
	class, state := "good", "whole"
	if !t.Whole {
		class, state = "bad", "not whole"
	}
	p.Put("<tr><td><b>%s</b></td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"%s\">%s</td>"+
		"<td><code>%s</code></td></tr>\n", t.Table, display.Maybe(ls.Number(t.Rows)), t.lostText(), class, state,
		cmp.Or(t.Output, "none"))
	p.Put("<tr><td colspan=\"5\"><details%s><summary>tablets, moments, reasons</summary>\n<dl>",
		map[bool]string{true: "", false: " open"}[t.Whole])
	for _, f := range t.facts() {
		p.Put("<dt>%s</dt><dd>%s</dd>\n", f[0], f[1])
	}
	p.Put("</dl>\n")
	if len(t.Tablets) > 0 {
		p.Put("<table><tr><th>tablet</th><th>partition</th><th>state</th><th>server</th><th>last operation</th>" +
			"<th>why</th></tr>\n")
	}
	for _, tb := range t.Tablets {
		for _, r := range tb.Replicas {
			p.Put("<tr><td><code>%s</code></td><td>%s</td><td>%s</td><td><code>%s</code></td><td>%s</td>"+
				"<td>%s</td></tr>\n", tb.ID, tb.Partition, r.State, r.Server, r.Last, r.Why)
		}
	}
	if len(t.Tablets) > 0 {
		p.Put("</table>\n")
	}
	for _, l := range t.Losses {
		p.Put("<code>%s</code><br>\n", l)
	}
	p.Put("</details></td></tr>\n")
}

// others writes data that belong to no table, and the findings.
func (p *page) others(d *rescueDoc) {
	if len(d.Unnamed) > 0 {
		p.Put("<h2>In no table</h2>\n<table>\n<tr><th>state</th><th>tablet</th><th>place</th><th>why</th></tr>\n")
		for _, u := range d.Unnamed {
			p.Put("<tr><td>%s</td><td><code>%s</code> %s</td><td><code>%s</code></td><td>%s</td></tr>\n", u.State,
				u.Tablet, u.Table, u.Place, u.Why)
		}
		p.Put("</table>\n")
	}
	p.leftOut(d.Left)
	if len(d.Findings) > 0 {
		p.Put("<h2>Findings</h2>\n<table>\n<tr><th>severity</th><th>code</th><th>place</th><th>message</th></tr>\n")
		for _, f := range d.Findings {
			p.Put("<tr><td>%s</td><td>%s</td><td><code>%s</code></td><td>%s</td></tr>\n", f.Severity, f.Code, f.Object,
				f.Message)
		}
		p.Put("</table>\n")
	}
}

// leftOut writes the files that belong to no table.
func (p *page) leftOut(list []leftDoc) {
	if len(list) == 0 {
		return
	}
	p.Put("<h2>Left out</h2>\n<ul>\n")
	for _, l := range list {
		p.Put("<li><code>%s</code> %s</li>\n", l.File, l.Why)
	}
	p.Put("</ul>\n")
}

// files writes the list of source files.
func (p *page) files(d *rescueDoc) {
	p.Put("<h2>Sources</h2>\n<details><summary>%s</summary>\n<table>\n<tr><th>file</th><th class=\"n\">bytes</th>"+
		"<th>checksum</th></tr>\n", display.Count(int64(len(d.Sources)), "file"))
	for _, s := range d.Sources {
		p.Put("<tr><td><code>%s</code></td><td class=\"n\">%s</td><td><code>%s</code> %s</td></tr>\n", s.File,
			display.Thousands(s.Bytes), cmp.Or(s.Checksum, s.Kind), cmp.Or(s.Problem, s.Link))
	}
	p.Put("</table>\n</details>\n")
}
