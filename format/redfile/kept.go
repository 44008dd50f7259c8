package redfile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/wire"
)

// The Arrow schema that our writer keeps says what no other part of the file says: what the numbers of a
// decimal, or of a time, mean. One wrong bit in it would give other values in every row, so it has a checksum
// of its own beside it, also where pages and metadata have none.
const sumKey = "stoa.schema.crc"

func sumOf(text string) string { return fmt.Sprintf("%08x", crcOf([]byte(text))) }

// pair is the value of a key; ok is false if there is none.
func (m *fileMeta) pair(key string) (value string, ok bool) {
	i := slices.IndexFunc(m.pairs, func(kv keyValue) bool { return kv.key == key })
	if i < 0 {
		return "", false
	}
	return m.pairs[i].value, true
}

// arrow is the Arrow schema that the writer kept in the metadata at a place; nil if there is none.
func (m *fileMeta) arrow(l format.Limits, at fault.Span) (*arrow.Schema, error) {
	text, ok := m.pair(schemaKey)
	sum, summed := m.pair(sumKey)
	switch {
	case !ok && summed:
		return nil, fmt.Errorf("it is missing, and its checksum is there")
	case !ok:
		return nil, nil
	case summed && sum != sumOf(text):
		return nil, fmt.Errorf("its checksum is %s, and %s is stored", sumOf(text), sum)
	}
	return schemaOfText(text, l, at)
}

// arrowTree is the schema, in RedFile's words, that the writer kept in Arrow's; nil if there is none, or it
// is more than the limits allow.
func (m *fileMeta) arrowTree(l format.Limits) *node {
	sc, err := m.arrow(l, fault.Span{})
	if sc == nil || err != nil {
		return nil
	}
	t, err := treeOf(sc)
	if err != nil {
		return nil
	}
	return t
}

// takeArrow takes the Arrow schema that the writer kept, if there is one. It is an error if that is damaged: no
// writer but ours has one.
func (f *file) takeArrow(stored []leaf) (taken bool, err error) {
	sc, err := f.meta.arrow(f.limits, f.metaAt)
	if errors.Is(err, fault.Limit) {
		return false, err
	}
	if err == nil && sc != nil {
		err = f.fitArrow(sc, stored)
	}
	if _, summed := f.meta.pair(sumKey); err == nil && sc != nil && !summed && f.opts.schema == "" {
		err = sameNames(sc, stored)
	}
	if err != nil {
		return false, fault.Corruptf(f.metaAt, "file_metadata.key_value_metadata."+schemaKey,
			"the Arrow schema of the file: %v", err)
	}
	return sc != nil, nil
}

// fitArrow takes an Arrow schema that has these leaves.
func (f *file) fitArrow(sc *arrow.Schema, stored []leaf) error {
	ls, err := arrowLeaves(sc)
	if err != nil {
		return err
	}
	if len(ls) != len(stored) && len(stored) > 0 {
		return fmt.Errorf("it has %d columns, and the file %d", len(ls), len(stored))
	}
	for i := range stored {
		if ls[i].typ != stored[i].typ || ls[i].maxDef != stored[i].maxDef || ls[i].maxRep != stored[i].maxRep {
			return fmt.Errorf("its column %s would be stored as %s with greatest levels %d and %d, and the file has "+
				"%s with %d and %d", ls[i].column.Name, ls[i].typ, ls[i].maxDef, ls[i].maxRep, stored[i].typ,
				stored[i].maxDef, stored[i].maxRep)
		}
		ls[i].path = stored[i].path
	}
	f.schema, f.leaves = sc, ls
	return nil
}

// sameNames holds the names in an Arrow schema without checksum against those of the leaves.
func sameNames(sc *arrow.Schema, stored []leaf) error {
	t, err := treeOf(sc)
	if err != nil {
		return err
	}
	for i, l := range leavesOf(t) {
		if i < len(stored) && !slices.Equal(l.path, stored[i].path) {
			return fmt.Errorf("it calls column %d %q, which is %q", i, l.path, stored[i].path)
		}
	}
	return nil
}

// takeCopy takes the Arrow schema of the sync block at the file's beginning, if there is one that is whole.
func (f *file) takeCopy(ctx context.Context, stored []leaf) bool {
	s, at := f.firstBlock(ctx)
	if s == nil || s.metadata == nil {
		return false
	}
	c := wire.NewInnerCursor(s.metadata, at, "sync.metadata")
	m, _ := parseFileMeta(c.Within(f.limits.Memory()))
	if c.Err() != nil {
		return false
	}
	sc, err := m.arrow(f.limits, at)
	if err != nil || sc == nil || f.fitArrow(sc, stored) != nil {
		return false
	}
	f.meta.pairs = append(f.meta.pairs, m.pairs...)
	return true
}

// reread is format.Format.Reread: what was written without the Arrow schema that is usually kept comes back in
// the types that are stored. To see that the values are those that went in, it is read as if the schema were
// kept.
func reread(sc *arrow.Schema, o format.WriteOptions) (format.Format, bool) {
	f := format.Format{Name: "redfile", Extensions: []string{".red"}, Probe: probe, List: list, Open: open,
		ReadKeys: readKeys}
	opts, err := parseCreateOptions(o.Opts)
	if err != nil || !opts.noArrow {
		return f, err == nil
	}
	kept, err := schemaText(canonicalSchema(sc))
	if err != nil {
		return f, false
	}
	f.Retypes = true
	f.Open = func(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
		opts, err := parseOptions(o.Opts)
		if err != nil {
			return nil, err
		}
		opts.kept = kept
		return openWith(ctx, tg, o, opts)
	}
	return f, true
}
