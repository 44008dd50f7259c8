package look

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/region"
	"stoa/serve"
)

var describeForms = []string{"text", "json", "jsonl", "html"}

// nodeDoc is a node in -f json. at is in bytes of the object; inner is the offset in the decoded bytes of the enclosing
// node, if there are any.
type nodeDoc struct {
	Depth  int    `json:"depth"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Object string `json:"object"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Inner  *int64 `json:"inner,omitempty"`
	Role   string `json:"role"`
	Column string `json:"column,omitempty"`
	Codec  string `json:"codec,omitempty"` // the compression of the data in it
	// From and To are rows, half-open; null: not known.
	From *int64 `json:"from,omitempty"`
	To   *int64 `json:"to,omitempty"`
	// ID is the node's position, from 0; Parent is the id of the node that it is part of, -1 of none.
	ID     int `json:"id"`
	Parent int `json:"parent"`
}

func DescribeCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out output.OutputFlags
	var pages bool
	cmd := &cobra.Command{
		Use:   "describe PATH...",
		Short: "Show the structure of a file, byte by byte",
		Long: `Show which structure every byte of a file belongs to: offset, length, name and value, with
the nesting of structures as indentation. With --pages also the contents of data pages; an offset with a +
is in the decoded bytes of the page. The last line says how many of the file's bytes are described.

-f json prints an array of nodes, and -f jsonl one node per line, in the order of the text: children come
after their parent, with depth + 1; the last line goes to standard error. Each has its role and, if they
can be told, the column, the codec and the rows from..to that it belongs to. -f html writes a
self-contained page about one file, with a map of its bytes and what verify finds.`,
		Example: "  stoa describe block.cfile\n  stoa describe sales.parquet -f jsonl -o anatomy.jsonl\n" +
			"  stoa describe broken.cfile -f html -o broken.html",
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Check(describeForms); err != nil {
				return err
			}
			o, err := src.Options(cmd.Context(), a, args)
			if err != nil {
				return err
			}
			if out.Form == "html" {
				return describePage(a, cmd.Context(), args, stoa.DescribeOptions{OpenOptions: o, Pages: pages}, &out)
			}
			return describePaths(a, cmd.Context(), args, stoa.DescribeOptions{OpenOptions: o, Pages: pages}, &out)
		},
	}
	cmd.Flags().BoolVar(&pages, "pages", false, "also describe the contents of data pages")
	out.Register(cmd, describeForms, "default text")
	src.Register(a, cmd)
	return cli.First(cmd, "pages", "format", "output")
}

func describePaths(a *cli.App, ctx context.Context, args []string, o stoa.DescribeOptions,
	out *output.OutputFlags) error {
	for _, p := range args {
		if err := cli.CheckOutput(out.File, []stoa.SourceInfo{{Name: p}}); err != nil {
			return err
		}
	}
	p, err := a.Create(ctx, out.Path())
	if err != nil {
		return err
	}
	defer p.Abort(ctx)
	n := newNodeWriter(p, out.Form)
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
			break // the readable nodes are shown before the error
		}
	}
	if cerr := n.close(); cerr != nil {
		return errors.Join(cerr, err)
	}
	for _, s := range n.cover.lines(func(object string) int64 { return a.Size(ctx, object) }) {
		if out.Form == "" || out.Form == "text" {
			fmt.Fprintln(p, s)
		} else {
			a.Note("%s", s)
		}
	}
	return errors.Join(p.Commit(ctx), err)
}

// nodeWriter writes nodes as they arrive.
type nodeWriter struct {
	w     io.Writer
	form  string
	array *output.JsonArray
	cover coverage
	tell  serve.Tracker
}

func newNodeWriter(w io.Writer, form string) *nodeWriter {
	n := &nodeWriter{w: w, form: form}
	if form == "json" {
		n.array = &output.JsonArray{W: w}
		n.w = output.Joiner{A: n.array}
	}
	return n
}

func (n *nodeWriter) write(x region.Node) error {
	n.cover.add(x)
	if n.form == "json" || n.form == "jsonl" {
		return output.WriteLines(n.w, []nodeDoc{docOfNode(x, n.tell.Add(x))})
	}
	_, err := io.WriteString(n.w, nodeLine(x)+"\n")
	return err
}

func (n *nodeWriter) close() error {
	if n.array != nil {
		return n.array.End()
	}
	return nil
}

func docOfNode(x region.Node, t serve.Told) nodeDoc {
	d := nodeDoc{Depth: x.Depth, Kind: x.Kind.String(), Name: x.Name, Value: x.Value, Object: x.At.Object,
		Offset: x.At.Off, Length: x.At.Len, Role: string(t.Role), Column: t.Column, Codec: t.Codec,
		ID: t.ID, Parent: t.Parent}
	if t.From >= 0 {
		d.From = &t.From
	}
	if t.To >= 0 {
		d.To = &t.To
	}
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
	s := fmt.Sprintf("%s%10d %10d  %s%s", mark, at, x.At.Len, display.Indent(x.Depth), display.OneLine(x.Name))
	if x.Kind != region.Struct && x.Kind != region.Data {
		s += " (" + x.Kind.String() + ")"
	}
	if x.Value != "" {
		s += ": " + display.OneLine(x.Value)
	}
	return s
}

// coverage reports how much of each object is described.
type coverage struct {
	region.Coverage
	objects []string // in order of first appearance
}

func (c *coverage) add(x region.Node) {
	c.Add(x)
	if x.At.Object != "" && !slices.Contains(c.objects, x.At.Object) {
		c.objects = append(c.objects, x.At.Object)
	}
}

// lines returns a line per object. It also reports bytes that two structures claim, which should not occur.
func (c *coverage) lines(size func(object string) int64) []string {
	var out []string
	for _, name := range c.objects {
		n := size(name)
		if n < 0 {
			continue
		}
		gaps, overlaps := c.Check(fault.Span{Object: name, Len: n})
		s := fmt.Sprintf("%s: all %s are described", display.OneLine(name), display.Count(n, "byte"))
		if lost := sum(gaps); lost > 0 {
			s = fmt.Sprintf("%s: %s of %s are described, %s belong to no structure", display.OneLine(name),
				display.Thousands(n-lost), display.Count(n, "byte"), display.Thousands(lost))
		}
		if shared := sum(overlaps); shared > 0 {
			s += ", " + display.Count(shared, "byte") + " to more than one"
		}
		out = append(out, s)
	}
	return out
}

func sum(spans []fault.Span) int64 {
	var n int64
	for _, s := range spans {
		n += s.Len
	}
	return n
}
