package carbon

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/table"
	"stoa/internal/check"
	"stoa/store"
	"stoa/wire"
)

// dictChecker verifies dictionaries.
type dictChecker struct {
	*check.Reporter
	ctx    context.Context
	tree   store.Tree
	limits format.Limits
}

// reportFile reports a finding about a file. No rows are attributed to it, because rows are lost in the columns that
// have the codes.
func (v *dictChecker) reportFile(code string, at fault.Span, format string, args ...any) {
	v.Rows(code, at, [2]int64{-1, -1}, 0, format, args...)
}

// reportError reports damage of a file, and returns an error that is not damage.
func (v *dictChecker) reportError(code string, err error) error {
	var e *fault.Error
	if !errors.Is(err, fault.Corrupt) || !errors.As(err, &e) {
		return err
	}
	msg := e.Reason
	if e.Path != "" {
		msg = e.Path + ": " + msg
	}
	v.reportFile(code, e.At, "%s", msg)
	return nil
}

// verifyDictionaries verifies the dictionaries of all columns of a table.
func verifyDictionaries(ctx context.Context, d *dict.Dictionaries, cols []*schema.Column, r *check.Reporter) error {
	v := &dictChecker{ctx: ctx, tree: d.Tree, limits: d.Opts.Limits.WithDefaults()}
	for _, root := range cols {
		var err error
		root.Walk(func(c *schema.Column) {
			if err == nil && schema.HasGlobalCodes(c) {
				v.Reporter = r.For(d.Dir, c.Name)
				err = v.dictionary(path.Join(d.Dir, c.ID+dict.DictExt), c)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyDictionary verifies one .dict with its .dictmeta and sort index, or a .dictmeta or .sortindex alone.
func verifyDictionary(ctx context.Context, tg format.Target, o format.OpenOptions, r *check.Reporter) error {
	v := &dictChecker{Reporter: r.For(tg.Name, ""), ctx: ctx, tree: tg.Tree, limits: o.Limits.WithDefaults()}
	switch table.ByName(tg.Name) {
	case table.KindDict:
		return v.dictionary(tg.Name, nil)
	case table.KindDictMeta:
		_, err := dict.ReadLoads(ctx, tg.Tree, tg.Name, v.limits)
		return v.reportError("carbon.dictmeta.damaged", err)
	}
	obj, err := layout.OpenObject(ctx, tg.Tree, tg.Name, v.limits)
	if err != nil {
		return err
	}
	_, err = v.sortIndex(obj)
	return v.reportError("carbon.sortindex.damaged", err)
}

// sortIndex reads a .sortindex.
func (v *dictChecker) sortIndex(obj layout.Object) (dict.SortInfo, error) {
	b, err := obj.Read(v.ctx, 0, obj.At.Len, "")
	if err != nil {
		return dict.SortInfo{}, err
	}
	return dict.WholeSortInfo(wire.NewCursor(b, obj.At, ""))
}

// dictionary verifies the three files of a dictionary. col is nil if the type of the values is unknown.
func (v *dictChecker) dictionary(name string, col *schema.Column) error {
	obj, err := layout.OpenObject(v.ctx, v.tree, name, v.limits)
	if errors.Is(err, fs.ErrNotExist) {
		v.reportFile("carbon.dict.missing", fault.Span{Object: name}, "missing")
		return nil
	}
	if err != nil {
		return err
	}
	metaName := strings.TrimSuffix(name, dict.DictExt) + dict.DictMetaExt
	loads, err := dict.ReadLoads(v.ctx, v.tree, metaName, v.limits)
	if err == nil && loads == nil {
		v.reportFile("carbon.dictmeta.missing", fault.Span{Object: metaName}, "missing")
	}
	if err := v.reportError("carbon.dictmeta.damaged", err); err != nil {
		return err
	}
	b, err := obj.Read(v.ctx, 0, obj.At.Len, "")
	if err != nil {
		return err
	}
	c := wire.NewCursor(b, obj.At, "")
	d := dict.ParseDictValues(c)
	end := v.extent(obj.At, loads, c)
	if n, err := d.Trusted(loads); err != nil {
		d.Values = d.Values[:n]
		if int64(obj.At.Len) >= end && c.Err() == nil {
			if err := v.reportError("carbon.dict.counts", fault.Locate(err, obj.At, true, "")); err != nil {
				return err
			}
		}
	}
	v.values(obj.At, d.Values)
	return v.order(name, obj.At.Sub(0, min(end, obj.At.Len)), d.Values, col)
}

// extent compares the size of a dictionary with its metadata, and returns the offset at which the finished loads end.
func (v *dictChecker) extent(at fault.Span, loads []dict.DictLoad, c *wire.Cursor) int64 {
	end := at.Len
	if n := len(loads); n > 0 {
		end = loads[n-1].End
	}
	switch {
	case at.Len < end:
		v.reportFile("carbon.dict.cut", at, "expected the %d bytes of its loads, found %d", end, at.Len)
	case c.Err() != nil && int64(c.Pos()) < end || c.Err() != nil && len(loads) == 0:
		v.reportError("carbon.dict.damaged", c.Err())
	}
	if at.Len > end {
		v.reportFile("carbon.dict.unfinished", at.Sub(end, at.Len-end), "%d bytes after the last finished load",
			at.Len-end)
	}
	return end
}

// values reports if code 1 is not null, and the first value that has two codes.
func (v *dictChecker) values(at fault.Span, values [][]byte) {
	if len(values) > 0 && string(values[0]) != schema.NullText {
		v.reportFile("carbon.dict.null", at, "the value of code 1 is %q", values[0])
	}
	seen := make(map[string]int, len(values))
	for i, x := range values {
		if k, ok := seen[string(x)]; ok {
			v.reportFile("carbon.dict.twice", at, "%q is the value of code %d and of code %d", x, k, i+1)
			return
		}
		seen[string(x)] = i + 1
	}
}

// order verifies the sort index that belongs to a dictionary.
func (v *dictChecker) order(name string, at fault.Span, values [][]byte, col *schema.Column) error {
	g := &dict.GlobalDictionary{Col: col, Tree: v.tree, Limits: v.limits, Dict: at}
	s, file, err := g.ReadSortIndex(v.ctx)
	switch {
	case err != nil:
		return v.reportError("carbon.sortindex.damaged", err)
	case s == nil:
		v.reportFile("carbon.sortindex.missing", fault.Span{Object: dict.SortIndexNames(name, at.Len)[0]},
			"missing")
	case len(s.Codes) != len(values):
		v.reportFile("carbon.sortindex.order", fault.Span{Object: file}, "expected the %d codes of the dictionary, "+
			"found %d", len(values), len(s.Codes))
	case col != nil:
		if o := dict.NewDictOrder(col, values); !o.Follows(col, s.Codes) &&
			!(col.Type == layout.TypeString && javaOrder(s.Codes, values)) {
			v.reportFile("carbon.sortindex.order", fault.Span{Object: file},
				"the codes are not in the order of their values")
		}
	}
	return nil
}

// javaOrder reports whether codes are in the order of CarbonData's writer, which sorts strings as Java does.
func javaOrder(codes []int32, values [][]byte) bool {
	return slices.IsSortedFunc(codes, func(a, b int32) int {
		return dict.JavaCompare(string(values[a-1]), string(values[b-1]))
	})
}
