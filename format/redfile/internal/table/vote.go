package table

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
)

// leavesOfChunks derives the leaves from the metadata of the chunks, of which each row group has its own. No checksum
// is over that metadata, so the row groups vote.
func (f *File) leavesOfChunks(ctx context.Context) ([]schema.Leaf, error) {
	if len(f.Footer.Groups) == 0 {
		return nil, nil
	}
	out := make([]schema.Leaf, len(f.Footer.Groups[0].Columns))
	tied := make([]bool, len(out))
	var kept []schema.Leaf // according to the writer's Arrow schema
	if t := schema.ArrowTree(&f.Footer, f.Limits); t != nil {
		kept = schema.LeavesOf(t)
	}
	_, certain := f.Footer.Pair(schema.SumKey)
	certain = certain && len(kept) == len(out) && f.Opts.Schema == "" && f.Opts.ArrowSchema == ""
	for col := range out {
		v := ballot{untyped: certain}
		if certain {
			v.add(kept[col])
		}
		err := f.vote(ctx, col, &v)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case len(v.leaves) == 0 && len(kept) == len(out):
			out[col] = kept[col]
		case len(v.leaves) == 0:
			return nil, err
		default:
			out[col], tied[col] = v.winner()
			f.checkTexts(&v, col, &out[col])
		}
	}
	switch {
	case f.Recovering:
		f.correctChunks(ctx, out)
	case kept == nil:
		f.NameDamage = f.secondNames(ctx, out, tied)
	}
	return out, nil
}

// vote adds the leaves by the metadata of a column's chunks, until two of them agree and none differs. Chunks whose
// metadata cannot be read have no vote; the error is the first of theirs.
func (f *File) vote(ctx context.Context, col int, v *ballot) (first error) {
	for g := range f.Footer.Groups {
		m, err := f.ColumnMeta(ctx, g, col)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && !m.HasLevels {
			err = fault.Corruptf(f.MetaAt, layout.ChunkPath(g, col),
				"its metadata has no levels, and the file has no schema")
		}
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		v.add(schema.Leaf{Path: m.Path, Type: m.Type, MaxDef: uint8(m.MaxDef), MaxRep: uint8(m.MaxRep),
			Converted: m.Converted()})
		if len(v.leaves) == 1 && v.votes[0] == 2 {
			break
		}
	}
	return first
}

// ballot counts the votes of row groups for the path, the type and the maximum levels of a column.
type ballot struct {
	leaves  []schema.Leaf
	votes   []int
	untyped bool // the Arrow schema says what is text
}

func (v *ballot) add(l schema.Leaf) {
	if v.untyped {
		l.Converted = layout.ConvNone
	}
	i := slices.IndexFunc(v.leaves, func(o schema.Leaf) bool {
		return o.Type == l.Type && o.MaxDef == l.MaxDef && o.MaxRep == l.MaxRep && o.Converted == l.Converted &&
			slices.Equal(o.Path, l.Path)
	})
	if i < 0 {
		i, v.leaves, v.votes = len(v.votes), append(v.leaves, l), append(v.votes, 0)
	}
	v.votes[i]++
}

// winner returns the leaf with most votes. tied reports that another has as many: then it is the first of them, but
// text if one is and the other is not, as damage hides what says so, and does not write it.
func (v *ballot) winner() (l schema.Leaf, tied bool) {
	most := 0
	for i := range v.votes {
		switch {
		case v.votes[i] > v.votes[most]:
			most, tied = i, false
		case i > most && v.votes[i] == v.votes[most]:
			tied = true
			if a, b := v.leaves[most], v.leaves[i]; b.Converted != layout.ConvNone && slices.Equal(a.Path, b.Path) &&
				a.Type == b.Type && a.MaxDef == b.MaxDef && a.MaxRep == b.MaxRep {
				most = i
			}
		}
	}
	return v.leaves[most], tied
}

// checkTexts reports a chunk that, unlike its column, is or is not text by its metadata. It is read as its column.
func (f *File) checkTexts(v *ballot, col int, l *schema.Leaf) {
	for g := 0; g < len(f.Footer.Groups) && len(v.leaves) > 1 && !v.untyped; g++ {
		m := f.KnownMeta(g, col)
		if m != nil && m.Type == l.Type && m.Converted() != l.Converted {
			f.report("redfile.column.damaged", f.ChunkSpan(g, col),
				layout.ChunkPath(g, col)+".column_metadata.key_value_metadata",
				"what says that it is text differs from other row groups, as which it is read")
			return
		}
	}
}

// secondNames returns an error of class Corrupt if a column has different paths in the first and the second row group,
// in a file in which only the chunks name the columns, and the other row groups do not decide which is right: if the
// first path is damaged, rows would be returned under a wrong name. Later row groups are compared when they are read.
func (f *File) secondNames(ctx context.Context, leaves []schema.Leaf, tied []bool) error {
	if len(f.Footer.Groups) < 2 {
		return nil
	}
	for col := range min(len(leaves), len(f.Footer.Groups[1].Columns)) {
		if !tied[col] {
			continue
		}
		m, err := f.ColumnMeta(ctx, 1, col)
		if err != nil || slices.Equal(m.Path, leaves[col].Path) {
			continue // reading the chunk reports the error
		}
		return fault.Corruptf(f.ChunkSpan(1, col), layout.ChunkPath(1, col)+".column_metadata.path_in_schema",
			"expected %q, as in the first row group, found %q", leaves[col].Path, m.Path)
	}
	return ctx.Err()
}

// Contradiction returns an error of class Corrupt if the metadata of a chunk differs from its column.
func (f *File) Contradiction(m *layout.ColumnMeta, group, col int) error {
	if f.Footer.Gen < layout.GenC && !m.HasLevels && !f.Recovering {
		return fault.Corruptf(f.ChunkSpan(group, col), layout.ChunkPath(group, col)+".column_metadata",
			"no max levels, which other row groups have")
	}
	return f.CheckMeta(m, &f.Leaves[col], group, col)
}

// correctChunks gives a chunk whose metadata differs from its column in one property the column's: the path, the type,
// or the maximum levels. If the bytes of its pages do not agree with that, they are lost when they are decoded. A path
// is treated as damaged only if its names have the same lengths as those of the column, which changed bytes do not
// alter, and if no other column has that path. Other chunks are kept as they are, and cannot be read.
func (f *File) correctChunks(ctx context.Context, leaves []schema.Leaf) {
	for g := range f.Footer.Groups {
		for col := range min(len(leaves), len(f.Footer.Groups[g].Columns)) {
			m, err := f.ColumnMeta(ctx, g, col)
			if err != nil {
				continue
			}
			l := &leaves[col]
			path := !slices.Equal(m.Path, l.Path)
			typ := m.Type != l.Type
			if f.Footer.Gen < layout.GenC && !m.HasLevels {
				m.HasLevels, m.MaxDef, m.MaxRep = true, -1, -1
			}
			levels := m.HasLevels && (m.MaxDef != int32(l.MaxDef) || m.MaxRep != int32(l.MaxRep))
			switch {
			case path && !typ && !levels && sameLengths(m.Path, l.Path) && !named(leaves, m.Path):
				f.corrected(g, col, ".path_in_schema", fmt.Sprintf("%q", m.Path), fmt.Sprintf("%q", l.Path))
				m.Path = l.Path
			case typ && !path && !levels:
				f.corrected(g, col, ".type", m.Type.String(), l.Type.String())
				m.Type = l.Type
			case levels && !path && !typ:
				f.corrected(g, col, ".max_definition_level", fmt.Sprintf("max levels %d and %d (-1: none)", m.MaxDef,
					m.MaxRep), fmt.Sprintf("%d and %d", l.MaxDef, l.MaxRep))
				m.MaxDef, m.MaxRep = int32(l.MaxDef), int32(l.MaxRep)
			}
		}
	}
}

// corrected reports that a chunk is read as its column is elsewhere.
func (f *File) corrected(g, col int, field, found, as string) {
	f.report("redfile.column.damaged", f.ChunkSpan(g, col), layout.ChunkPath(g, col)+".column_metadata"+field,
		"%s, in other row groups the column is %s: it is read as that, and either may be right", found, as)
}

func sameLengths(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool { return len(a) == len(b) })
}

// named reports whether a column has the given path.
func named(leaves []schema.Leaf, path []string) bool {
	return slices.ContainsFunc(leaves, func(l schema.Leaf) bool { return slices.Equal(l.Path, path) })
}
