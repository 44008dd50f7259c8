package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/region"
)

var describeForms = []string{"text", "json", "jsonl"}

// nodeDoc is a node as -f json has it. at is in bytes of the object; inner is the offset in the decoded bytes of the
// enclosing node, where there are such.
type nodeDoc struct {
	Depth  int    `json:"depth"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Object string `json:"object"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Inner  *int64 `json:"inner,omitempty"`
}

func (a *app) describeCmd() *cobra.Command {
	var src sourceFlags
	var out outputFlags
	var pages bool
	cmd := &cobra.Command{
		Use:   "describe PATH...",
		Short: "Show the anatomy of a file, byte by byte",
		Long: `Show which structure every byte of a file belongs to: offset, length, name, value, and how the structures lie in each
other. --pages goes into the data pages; offsets with a + are in the decoded bytes of the page. The last line, which in
the JSON forms goes to standard error, says how many of the bytes are described.
-f jsonl is a line a node, in the order of the text, children after their parent with depth + 1; -f json is an array of them.`,
		Example: "  stoa describe block.cfile",
		Args:    a.paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(describeForms); err != nil {
				return err
			}
			o, err := src.options(a)
			if err != nil {
				return err
			}
			return a.describe(cmd.Context(), args, stoa.DescribeOptions{OpenOptions: o, Pages: pages}, &out)
		},
	}
	cmd.Flags().BoolVar(&pages, "pages", false, "go into the data pages")
	out.register(cmd, describeForms, "default text")
	src.register(a, cmd)
	return cmd
}

func (a *app) describe(ctx context.Context, args []string, o stoa.DescribeOptions, out *outputFlags) error {
	for _, p := range args {
		if err := spare(out.file, []stoa.SourceInfo{{Name: p}}); err != nil {
			return err
		}
	}
	p, err := a.create(ctx, out.path())
	if err != nil {
		return err
	}
	defer p.abort(ctx)
	n := newNodeWriter(p, out.form)
	for _, path := range args {
		for node, nerr := range stoa.Describe(ctx, path, o) {
			if nerr != nil {
				err = nerr
				break
			}
			if err = n.write(node); err != nil {
				return err
			}
		}
		if err != nil {
			break // what could be read is shown, and then the error
		}
	}
	if cerr := n.close(); cerr != nil {
		return errors.Join(cerr, err)
	}
	for _, s := range n.cover.lines(func(object string) int64 { return a.size(ctx, object) }) {
		if out.form == "" || out.form == "text" {
			fmt.Fprintln(p, s)
		} else {
			a.note("%s", s)
		}
	}
	return errors.Join(p.commit(ctx), err)
}

// nodeWriter writes nodes as they come.
type nodeWriter struct {
	w     io.Writer
	form  string
	array *jsonArray
	cover coverage
}

func newNodeWriter(w io.Writer, form string) *nodeWriter {
	n := &nodeWriter{w: w, form: form}
	if form == "json" {
		n.array = &jsonArray{w: w}
		n.w = joiner{n.array}
	}
	return n
}

func (n *nodeWriter) write(x region.Node) error {
	n.cover.add(x)
	if n.form == "json" || n.form == "jsonl" {
		return writeLines(n.w, []nodeDoc{docOfNode(x)})
	}
	_, err := io.WriteString(n.w, nodeLine(x)+"\n")
	return err
}

func (n *nodeWriter) close() error {
	n.cover.end()
	if n.array != nil {
		return n.array.end()
	}
	return nil
}

func docOfNode(x region.Node) nodeDoc {
	d := nodeDoc{Depth: x.Depth, Kind: x.Kind.String(), Name: x.Name, Value: x.Value, Object: x.At.Object, Offset: x.At.Off, Length: x.At.Len}
	if x.Inner >= 0 {
		d.Inner = &x.Inner
	}
	return d
}

func nodeLine(x region.Node) string {
	at, mark := x.At.Off, " "
	if x.Inner >= 0 {
		at, mark = x.Inner, "+"
	}
	s := fmt.Sprintf("%s%10d %10d  %s%s", mark, at, x.At.Len, indent(x.Depth), oneLine(x.Name))
	if x.Kind != region.Struct && x.Kind != region.Data {
		s += " (" + x.Kind.String() + ")"
	}
	if x.Value != "" {
		s += ": " + oneLine(x.Value)
	}
	return s
}

// coverage counts the bytes that a leaf of the anatomy owns.
type coverage struct {
	last  region.Node
	begun bool
	names []string // of objects, in the order of their coming
	ids   map[string]int
	spans []ownedSpan
}

type ownedSpan struct {
	object  int
	off, to int64
}

func (c *coverage) add(x region.Node) {
	if x.Inner >= 0 {
		if c.begun && x.Depth > c.last.Depth { // the node around it keeps its bytes: these are inside
			c.end()
		}
		return
	}
	if c.begun && x.Depth <= c.last.Depth {
		c.end()
	}
	c.last, c.begun = x, true
}

// end takes the last node as a leaf.
func (c *coverage) end() {
	if !c.begun {
		return
	}
	c.begun = false
	at := c.last.At
	if at.Len <= 0 || at.Off < 0 {
		return
	}
	gap := c.last.Kind == region.Gap // no structure claims it, but its object is named
	id, ok := c.ids[at.Object]
	if !ok {
		if c.ids == nil {
			c.ids = map[string]int{}
		}
		id = len(c.names)
		c.ids[at.Object] = id
		c.names = append(c.names, at.Object)
	}
	if gap {
		return
	}
	c.spans = append(c.spans, ownedSpan{id, at.Off, at.End()})
}

// lines says for each object how much of it is described.
func (c *coverage) lines(size func(object string) int64) []string {
	slices.SortFunc(c.spans, func(x, y ownedSpan) int {
		return cmp.Or(cmp.Compare(x.object, y.object), cmp.Compare(x.off, y.off))
	})
	covered := make([]int64, len(c.names))
	last := ownedSpan{object: -1}
	for _, s := range c.spans {
		if s.object != last.object {
			last = ownedSpan{object: s.object}
		}
		covered[s.object] += max(0, s.to-max(s.off, last.to))
		last.to = max(last.to, s.to)
	}
	var out []string
	for i, name := range c.names {
		n := size(name)
		switch {
		case n < 0:
			out = append(out, fmt.Sprintf("%s: %s are described", oneLine(name), count(covered[i], "byte")))
		case covered[i] == n:
			out = append(out, fmt.Sprintf("%s: all %s are described", oneLine(name), count(n, "byte")))
		default:
			out = append(out, fmt.Sprintf("%s: %s of %s are described, %s belong to no structure", oneLine(name), thousands(covered[i]), count(n, "byte"), thousands(n-covered[i])))
		}
	}
	return out
}
