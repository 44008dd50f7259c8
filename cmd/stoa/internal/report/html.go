package report

import (
	"bytes"
	"fmt"
	"html"

	"stoa/cmd/stoa/internal/display"
)

// The page of a report is a single file that fetches nothing. It is written by hand, because a template library makes
// the linker keep every method of every type in the command.

// PageHead is what comes before the content; %s is the title.
const PageHead = `<!DOCTYPE html>
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

// Page writes HTML. Everything except markup is escaped.
type Page struct{ bytes.Buffer }

// Put writes markup in which each %s is replaced by a text.
func (p *Page) Put(markup string, texts ...string) {
	args := make([]any, len(texts))
	for i, t := range texts {
		args[i] = html.EscapeString(display.OneLine(t))
	}
	fmt.Fprintf(p, markup, args...)
}
