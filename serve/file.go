package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"path"
)

// FilePage is a page of one file that needs no server: its anatomy, what verify finds, and its bytes if they are few.
type FilePage struct {
	Anatomy *Anatomy
	// Findings are documents as verify -f json has them.
	Findings any
	Bytes    []byte // of the whole file; nil: the page has none
}

// MaxPageBytes is how many bytes a file may have whose bytes are in its page.
const MaxPageBytes = 1 << 20

// fileScripts are the scripts of such a page, in order.
var fileScripts = []string{"core.js", "place.js", "map.js", "hex.js", "anatomy.js", "embedded.js"}

// Write writes the page: one document of HTML, whose policy allows its own script and style and nothing else.
func (p *FilePage) Write(w io.Writer) error {
	var script []byte
	for _, name := range fileScripts {
		script = append(script, pageFiles()[name]...)
	}
	style := []byte(pageFiles()["style.css"])
	words := map[string]string{} // what is said about names, once each
	for _, n := range p.Anatomy.nodes {
		name := plainName(n.Name)
		if _, ok := words[name]; !ok {
			words[name] = says(p.Anatomy.Format, name)
		}
	}
	maps.DeleteFunc(words, func(_, sentence string) bool { return sentence == "" })
	leaves := make([][3]int64, len(p.Anatomy.leaves))
	for i, l := range p.Anatomy.leaves {
		leaves[i] = [3]int64{l.off, l.end, int64(l.node)}
	}
	// json.Marshal escapes <, > and &, so that nothing in it ends the element
	doc, err := json.Marshal(map[string]any{"anatomy": p.Anatomy, "nodes": p.Anatomy.nodes, "leaves": leaves,
		"findings": p.Findings, "bytes": p.Bytes, "words": words})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src %s; style-src %s; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="stoa">
<title>%s · stoa</title>
<style>%s</style>
</head>
<body>
<header class="top"><span class="brand">stoa</span><span class="crumbs"></span>
<button class="theme quiet" type="button">Theme: auto</button></header>
<main id="main" tabindex="-1"><noscript>This page needs JavaScript.</noscript></main>
<p id="status" class="status" role="status" aria-live="polite"></p>
<script type="application/json" id="file">`, hash(script), hash(style),
		html.EscapeString(path.Base(p.Anatomy.Object)), style)
	b.Write(doc)
	fmt.Fprintf(&b, "</script>\n<script>%s</script>\n</body>\n</html>\n", script)
	_, err = w.Write(b.Bytes())
	return err
}

// hash is the source expression of a script or style in a content security policy.
func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
