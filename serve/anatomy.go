package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
)

// Node is a structure of a file, as the page has it: what describe says of it, and what can be told from that.
type Node struct {
	ID     int    `json:"id"` // its position in the order of describe
	Parent int    `json:"parent"`
	Depth  int    `json:"depth"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Inner  *int64 `json:"inner,omitempty"` // in the decoded bytes of the enclosing node; nil: offset is exact
	Role   Role   `json:"role"`
	Column string `json:"column,omitempty"`
	Codec  string `json:"codec,omitempty"`
	From   *int64 `json:"from,omitempty"` // rows, half-open
	To     *int64 `json:"to,omitempty"`
	Parts  int    `json:"parts,omitempty"` // nodes directly in it
	Says   string `json:"says,omitempty"`  // what the format's documents say about it; not in Anatomy itself
}

// leaf is a run of bytes [off, end) that nodes[node] owns; -1: nobody does.
type leaf struct {
	off, end int64
	node     int
}

// Anatomy is the structure of one file.
type Anatomy struct {
	Object string `json:"object"`
	Size   int64  `json:"size"`
	Format string `json:"format,omitempty"` // "": not known
	// Structures is how many nodes were described; Cut: there are more.
	Structures int         `json:"structures"`
	Cut        bool        `json:"cut,omitempty"`
	Problem    string      `json:"problem,omitempty"` // why the description ended early
	Roles      []RoleSum   `json:"roles"`
	Columns    []ColumnSum `json:"columns"`

	nodes  []Node
	leaves []leaf // a partition of [0, Size)
}

// RoleSum is how many bytes of a file have a role; ColumnSum, how many a column has.
type RoleSum struct {
	Role  Role  `json:"role"`
	Bytes int64 `json:"bytes"`
}

// ColumnSum is how many bytes of a file belong to a column.
type ColumnSum struct {
	Column string `json:"column"`
	Bytes  int64  `json:"bytes"`
}

// maxNodes is how many structures of a file are kept: some 100 MB.
const maxNodes = 500_000

// Describe reads the structure of the file name of size bytes.
func Describe(ctx context.Context, name string, size int64, o stoa.DescribeOptions) (*Anatomy, error) {
	a, err := Collect(name, size, stoa.Describe(ctx, name, o))
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil {
		tg := format.Target{Tree: cmp.Or[store.Tree](o.Tree, store.Local{}), Name: name, Opts: o.Opts, Limits: o.Limits}
		if f, ferr := stoa.Probe(ctx, tg, o.OpenOptions); ferr == nil {
			a.Format = f.Name
		}
	}
	return a, err
}

// explained returns nodes of a with what the format's documents say about each.
func (a *Anatomy) explained(nodes []Node) []Node {
	for i := range nodes {
		nodes[i].Says = says(a.Format, nodes[i].Name)
	}
	return nodes
}

// Collect makes an Anatomy of described nodes. Damage that ends the description is its Problem; another error is
// returned if nothing was described before it.
func Collect(name string, size int64, nodes iter.Seq2[region.Node, error]) (*Anatomy, error) {
	a := &Anatomy{Object: name, Size: size}
	var open []int // the nodes that enclose the next one
	for n, err := range nodes {
		if err != nil {
			if len(a.nodes) == 0 && !errors.Is(err, fault.Corrupt) {
				return nil, err
			}
			a.Problem = err.Error()
			break
		}
		if n.At.Object != name && n.At.Object != "" {
			continue
		}
		if len(a.nodes) == maxNodes {
			a.Cut = true
			break
		}
		for len(open) > 0 && a.nodes[open[len(open)-1]].Depth >= n.Depth {
			open = open[:len(open)-1]
		}
		a.nodes = append(a.nodes, a.nodeOf(n, open))
		open = append(open, len(a.nodes)-1)
	}
	a.Structures = len(a.nodes)
	a.rows()
	a.partition()
	a.sum()
	return a, nil
}

func (a *Anatomy) nodeOf(n region.Node, open []int) Node {
	d := Node{ID: len(a.nodes), Parent: -1, Depth: n.Depth, Kind: n.Kind.String(), Name: n.Name, Value: n.Value,
		Offset: n.At.Off, Length: n.At.Len}
	if n.Inner >= 0 {
		d.Inner = &n.Inner
	}
	above, column, parent, codec := Other, "", "", ""
	if len(open) > 0 {
		p := &a.nodes[open[len(open)-1]]
		p.Parts++
		d.Parent, above, column, parent, codec = p.ID, p.Role, p.Column, p.Name, p.Codec
	}
	d.Role, d.Column = roleOf(n, above), columnOf(n, parent, column)
	d.Codec = codecOf(n, d.Role, codec)
	if from, count := rowsOf(n); from >= 0 {
		d.From = &from
		if count >= 0 {
			to := from + count
			d.To = &to
		}
	}
	return d
}

// rows completes the rows of blocks: those without a number of rows end where the next one begins, or all that they are
// part of.
func (a *Anatomy) rows() {
	last := map[int]int{} // by parent
	for i := range a.nodes {
		n := &a.nodes[i]
		if n.From == nil {
			continue
		}
		if k, ok := last[n.Parent]; ok && a.nodes[k].To == nil {
			to := *n.From
			a.nodes[k].To = &to
		}
		last[n.Parent] = i
	}
	for parent, k := range last {
		if n := &a.nodes[k]; n.To == nil && parent >= 0 && a.nodes[parent].To != nil {
			to := *a.nodes[parent].To
			n.To = &to
		}
	}
}

// partition finds the owner of every byte: the exact nodes without exact ones in them, sorted by offset, each cut where
// an earlier one claims its bytes.
func (a *Anatomy) partition() {
	inner := make([]bool, len(a.nodes)) // has an exact node in it
	for i := len(a.nodes) - 1; i >= 0; i-- {
		if n := &a.nodes[i]; n.Parent >= 0 && (n.Inner == nil || inner[i]) {
			inner[n.Parent] = true
		}
	}
	var all []leaf
	for i, n := range a.nodes {
		if n.Inner == nil && !inner[i] && n.Length > 0 {
			all = append(all, leaf{n.Offset, n.Offset + n.Length, i})
		}
	}
	sorted.StablyBy(all, func(x, y leaf) int {
		return cmp.Or(cmp.Compare(x.off, y.off), cmp.Compare(x.end, y.end))
	})
	at := int64(0)
	add := func(from, to int64, node int) {
		from, to = max(at, from), min(to, a.Size)
		if from > at {
			a.leaves = append(a.leaves, leaf{at, from, -1})
		}
		if to > from {
			a.leaves = append(a.leaves, leaf{from, to, node})
			at = to
		}
	}
	for _, l := range all {
		if l.off < a.Size {
			add(l.off, l.end, l.node)
		}
	}
	if at < a.Size {
		a.leaves = append(a.leaves, leaf{at, a.Size, -1})
	}
}

// is returns the role and the column of a leaf.
func (a *Anatomy) is(l leaf) (Role, string) {
	if l.node < 0 {
		if a.Problem != "" || a.Cut {
			return Other, ""
		}
		return Gap, ""
	}
	return a.nodes[l.node].Role, a.nodes[l.node].Column
}

func (a *Anatomy) sum() {
	roles, columns := map[Role]int64{}, map[string]int64{}
	for _, l := range a.leaves {
		role, column := a.is(l)
		roles[role] += l.end - l.off
		if column != "" {
			columns[column] += l.end - l.off
		}
	}
	a.Roles, a.Columns = []RoleSum{}, []ColumnSum{}
	for r, n := range roles {
		a.Roles = append(a.Roles, RoleSum{r, n})
	}
	for c, n := range columns {
		a.Columns = append(a.Columns, ColumnSum{c, n})
	}
	sorted.By(a.Roles, func(x, y RoleSum) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Role, y.Role))
	})
	sorted.By(a.Columns, func(x, y ColumnSum) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Column, y.Column))
	})
	if len(a.Columns) > maxColumnSums {
		a.Columns = a.Columns[:maxColumnSums]
	}
}

const maxColumnSums = 500

// Segment is a run of bytes of the map: one leaf, or several that are too small to be drawn apart.
type Segment struct {
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Role   Role   `json:"role"`
	Column string `json:"column,omitempty"`
	Node   int    `json:"node"`   // -1: several, or nobody
	Leaves int    `json:"leaves"` // how many
}

// Map returns the bytes [from, to) as at most n segments, in which every byte has its owner: leaves, or buckets of many
// with the role and the column of most of their bytes.
func (a *Anatomy) Map(from, to int64, n int) []Segment {
	from, to = max(0, from), min(to, a.Size)
	first := a.leafAt(from)
	last, _ := slices.BinarySearchFunc(a.leaves, to, func(l leaf, off int64) int { return cmp.Compare(l.off, off) })
	out := []Segment{}
	if from >= to || first >= last {
		return out
	}
	leaves := a.leaves[first:last]
	if len(leaves) <= n {
		for _, l := range leaves {
			role, column := a.is(l)
			out = append(out, Segment{max(l.off, from), min(l.end, to), role, column, l.node, 1})
		}
		return out
	}
	for len(leaves) > 0 {
		k := int64(len(out))
		end := from + (to-from)*min(k+1, int64(n))/int64(n)
		var bucket []leaf
		for len(leaves) > 0 && (len(bucket) == 0 || leaves[0].end <= end) {
			bucket, leaves = append(bucket, leaves[0]), leaves[1:]
		}
		out = append(out, a.bucket(bucket, from, to))
	}
	return out
}

// bucket returns the segment of several leaves that follow one another.
func (a *Anatomy) bucket(leaves []leaf, from, to int64) Segment {
	type owner struct {
		role   Role
		column string
	}
	bytes := map[owner]int64{}
	s := Segment{From: max(leaves[0].off, from), To: min(leaves[len(leaves)-1].end, to), Node: -1, Leaves: len(leaves)}
	most := int64(-1)
	for _, l := range leaves {
		role, column := a.is(l)
		o := owner{role, column}
		bytes[o] += l.end - l.off
		if role == Gap { // never hidden
			bytes[o] += a.Size
		}
		if bytes[o] > most {
			most, s.Role, s.Column = bytes[o], role, column
		}
	}
	if len(leaves) == 1 {
		s.Node = leaves[0].node
	}
	return s
}

// At returns the nodes that own a byte, from the outermost in; none if no structure claims it.
func (a *Anatomy) At(off int64) []Node {
	k := a.leafAt(off)
	if k == len(a.leaves) || a.leaves[k].off > off || a.leaves[k].node < 0 {
		return nil
	}
	return a.Path(a.leaves[k].node)
}

// leafAt returns the index of the leaf that has the byte off, or of the first one after it.
func (a *Anatomy) leafAt(off int64) int {
	k, _ := slices.BinarySearchFunc(a.leaves, off+1, func(l leaf, end int64) int { return cmp.Compare(l.end, end) })
	return k
}

// Path returns a node and those it is part of, from the outermost in.
func (a *Anatomy) Path(id int) (path []Node) {
	for id >= 0 && id < len(a.nodes) {
		path = append(path, a.nodes[id])
		id = a.nodes[id].Parent
	}
	slices.Reverse(path)
	return path
}

// Parts returns the nodes directly in a node (-1: the outermost ones), at most n from the skip-th on.
func (a *Anatomy) Parts(id, skip, n int) []Node {
	out := []Node{}
	for i := max(0, id+1); i < len(a.nodes) && len(out) < n; i++ {
		if a.nodes[i].Parent == id {
			if skip--; skip < 0 {
				out = append(out, a.nodes[i])
			}
		} else if id >= 0 && a.nodes[i].Depth <= a.nodes[id].Depth {
			break
		}
	}
	return out
}

// Leaves returns the leaves in [from, to), at most n.
func (a *Anatomy) Leaves(from, to int64, n int) []Node {
	out := []Node{}
	for _, s := range a.Map(from, to, 1<<30) {
		if s.Node >= 0 && len(out) < n {
			out = append(out, a.nodes[s.Node])
		}
	}
	return out
}

// Search returns nodes at most n: those that own the byte, if what is a number of a byte (decimal or 0x…); those with
// the row, for "row N"; else those whose name, value or column contains it, whatever the case.
func (a *Anatomy) Search(what string, n int) ([]Node, error) {
	what = strings.TrimSpace(what)
	if what == "" {
		return nil, fault.Invalidf("there is nothing to search for")
	}
	if row, ok := strings.CutPrefix(strings.ToLower(what), "row "); ok {
		at, err := strconv.ParseInt(strings.TrimSpace(row), 10, 64)
		if err != nil {
			return nil, fault.Invalidf("%q is not the number of a row", row)
		}
		return a.find(n, func(d *Node) bool { return d.has(at) }), nil
	}
	if off, ok := byteNumber(what); ok {
		if off >= a.Size {
			return nil, fault.Invalidf("byte %d is past the end of the file (%d)", off, a.Size)
		}
		if path := a.At(off); len(path) > 0 {
			return path[len(path)-1:], nil
		}
		return []Node{}, nil
	}
	low := strings.ToLower(what)
	return a.find(n, func(d *Node) bool {
		return strings.Contains(strings.ToLower(d.Name), low) || strings.Contains(strings.ToLower(d.Value), low) ||
			strings.EqualFold(d.Column, what)
	}), nil
}

// byteNumber returns the number of a byte: decimal, also with zeros before it, or hexadecimal after 0x.
func byteNumber(what string) (off int64, ok bool) {
	digits, base := what, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(what), "0x"); ok {
		digits, base = hex, 16
	}
	off, err := strconv.ParseInt(digits, base, 64)
	return off, err == nil && off >= 0 && digits[0] != '+' && digits[0] != '-'
}

// has reports whether a node, such as a page, has values of a row. What pages are parts of has not.
func (d *Node) has(row int64) bool {
	return d.From != nil && d.To != nil && *d.From <= row && row < *d.To && (d.Parts == 0 || d.Role == Page)
}

func (a *Anatomy) find(n int, is func(*Node) bool) []Node {
	out := []Node{}
	for i := range a.nodes {
		if len(out) < n && is(&a.nodes[i]) {
			out = append(out, a.nodes[i])
		}
	}
	return out
}

func (a *Anatomy) String() string { return fmt.Sprintf("%s: %d structures", a.Object, a.Structures) }
