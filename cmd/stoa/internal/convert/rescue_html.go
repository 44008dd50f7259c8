package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"strings"

	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/ls"
)

// The page of a report is a single file that fetches nothing. It is written by hand, because a template library makes
// the linker keep every method of every type in the command.

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em;
  color: #1c1c1c; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
.bad { color: #a40000 } .good { color: #1a6b1a }
table { border-collapse: collapse; width: 100%% }
th, td { text-align: left; vertical-align: top; padding: .3em .7em; border-bottom: 1px solid #ddd }
th { border-bottom: 2px solid #888 }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
code { font: .92em ui-monospace, monospace; overflow-wrap: anywhere }
summary { cursor: pointer }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1em 1em; margin: .4em 0 }
dt { color: #666 } dd { margin: 0; overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #191919 } .bad { color: #ff8a80 }
  .good { color: #8bd18b } th, td { border-color: #444 } dt { color: #aaa } }
</style>
</head>
<body>
`

// page writes HTML. Everything except markup is escaped.
type page struct{ bytes.Buffer }

// put writes markup in which each %s is replaced by a text.
func (p *page) put(markup string, texts ...string) {
	args := make([]any, len(texts))
	for i, t := range texts {
		args[i] = html.EscapeString(display.OneLine(t))
	}
	fmt.Fprintf(p, markup, args...)
}

func (d *rescueDoc) html() ([]byte, error) {
	var p page
	class := "good"
	if !d.Whole {
		class = "bad"
	}
	p.put(pageHead, "Rescue of "+strings.Join(d.Roots, ", "))
	p.put("<h1 class=\"%s\">%s</h1>\n", class, d.verdict())
	p.put("<dl><dt>written</dt><dd>%s to <code>%s</code> as %s</dd><dt>known to be %s</dt><dd>%s</dd>\n",
		display.Count(d.rows(), "row"), d.Output, d.To, d.lostWord(), d.lostRows())
	for _, r := range d.Roots {
		p.put("<dt>root</dt><dd><code>%s</code></dd>\n", r)
	}
	p.put("<dt>begun</dt><dd>%s, %s seconds</dd>\n", d.Began.Format("2006-01-02T15:04:05Z07:00"),
		fmt.Sprintf("%.1f", d.Seconds))
	if d.At != "" {
		p.put("<dt>as of</dt><dd>%s</dd>\n", d.At)
	}
	for _, w := range d.Why {
		p.put("<dt class=\"bad\">why not all</dt><dd>%s</dd>\n", w)
	}
	p.put("</dl>\n<h2>Tables</h2>\n<table>\n<tr><th>table</th><th class=\"n\">rows written</th>"+
		"<th class=\"n\">rows %s</th><th>state</th><th>output</th></tr>\n", d.lostWord())
	for _, t := range d.Tables {
		p.table(t)
	}
	p.put("</table>\n")
	p.others(d)
	p.files(d)
	p.put("</body>\n</html>\n")
	return p.Bytes(), nil
}

// table writes a line, and below it one with everything that is known about the table.
func (p *page) table(t *rescuedTable) {
	class, state := "good", "whole"
	if !t.Whole {
		class, state = "bad", "not whole"
	}
	p.put("<tr><td><b>%s</b></td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"%s\">%s</td>"+
		"<td><code>%s</code></td></tr>\n", t.Table, display.Maybe(ls.Number(t.Rows)), t.lostText(), class, state,
		cmp.Or(t.Output, "none"))
	p.put("<tr><td colspan=\"5\"><details%s><summary>tablets, moments, reasons</summary>\n<dl>",
		map[bool]string{true: "", false: " open"}[t.Whole])
	for _, f := range t.facts() {
		p.put("<dt>%s</dt><dd>%s</dd>\n", f[0], f[1])
	}
	p.put("</dl>\n")
	if len(t.Tablets) > 0 {
		p.put("<table><tr><th>tablet</th><th>partition</th><th>state</th><th>server</th><th>last operation</th>" +
			"<th>why</th></tr>\n")
	}
	for _, tb := range t.Tablets {
		for _, r := range tb.Replicas {
			p.put("<tr><td><code>%s</code></td><td>%s</td><td>%s</td><td><code>%s</code></td><td>%s</td>"+
				"<td>%s</td></tr>\n", tb.ID, tb.Partition, r.State, r.Server, r.Last, r.Why)
		}
	}
	if len(t.Tablets) > 0 {
		p.put("</table>\n")
	}
	for _, l := range t.Losses {
		p.put("<code>%s</code><br>\n", l)
	}
	p.put("</details></td></tr>\n")
}

// others writes data that belong to no table, and the findings.
func (p *page) others(d *rescueDoc) {
	if len(d.Unnamed) > 0 {
		p.put("<h2>In no table</h2>\n<table>\n<tr><th>state</th><th>tablet</th><th>place</th><th>why</th></tr>\n")
		for _, u := range d.Unnamed {
			p.put("<tr><td>%s</td><td><code>%s</code> %s</td><td><code>%s</code></td><td>%s</td></tr>\n", u.State,
				u.Tablet, u.Table, u.Place, u.Why)
		}
		p.put("</table>\n")
	}
	p.leftOut(d.Left)
	if len(d.Findings) > 0 {
		p.put("<h2>Findings</h2>\n<table>\n<tr><th>severity</th><th>code</th><th>place</th><th>message</th></tr>\n")
		for _, f := range d.Findings {
			p.put("<tr><td>%s</td><td>%s</td><td><code>%s</code></td><td>%s</td></tr>\n", f.Severity, f.Code, f.Object,
				f.Message)
		}
		p.put("</table>\n")
	}
}

// leftOut writes the files that belong to no table.
func (p *page) leftOut(list []leftDoc) {
	if len(list) == 0 {
		return
	}
	p.put("<h2>Left out</h2>\n<ul>\n")
	for _, l := range list {
		p.put("<li><code>%s</code> %s</li>\n", l.File, l.Why)
	}
	p.put("</ul>\n")
}

// files writes the list of source files.
func (p *page) files(d *rescueDoc) {
	p.put("<h2>Sources</h2>\n<details><summary>%s</summary>\n<table>\n<tr><th>file</th><th class=\"n\">bytes</th>"+
		"<th>checksum</th></tr>\n", display.Count(int64(len(d.Sources)), "file"))
	for _, s := range d.Sources {
		p.put("<tr><td><code>%s</code></td><td class=\"n\">%s</td><td><code>%s</code> %s</td></tr>\n", s.File,
			display.Thousands(s.Bytes), cmp.Or(s.Checksum, s.Kind), cmp.Or(s.Problem, s.Link))
	}
	p.put("</table>\n</details>\n")
}
