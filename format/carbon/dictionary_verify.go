package carbon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// dictionaryCodes are the findings about dictionaries.
var dictionaryCodes = []region.CodeDoc{
	{Code: "carbon.dict.counts", Severity: region.Error, Help: "A dictionary does not hold as many chunks and values as its metadata says of a load. The codes of that load and of later ones are not trusted."},
	{Code: "carbon.dict.cut", Severity: region.Error, Help: "A dictionary ends before its metadata says. The codes behind the cut have lost their values."},
	{Code: "carbon.dict.damaged", Severity: region.Error, Help: "A dictionary cannot be read from some place on. The codes behind it have lost their values."},
	{Code: "carbon.dict.missing", Severity: region.Error, Help: "The dictionary of a column is not in the table's Metadata directory: the column's codes have lost their values. Other columns do not need it."},
	{Code: "carbon.dict.null", Severity: region.Warning, Help: "The first value of a dictionary is not the text that stands for null. Code 1 is read as null all the same, as CarbonData does."},
	{Code: "carbon.dict.twice", Severity: region.Warning, Help: "A dictionary has a value under two codes. CarbonData's filters find the rows of one of them only."},
	{Code: "carbon.dict.unfinished", Severity: region.Warning, Help: "A dictionary goes on behind the last load that its metadata names: a load did not finish, or is under way. No data uses these codes."},
	{Code: "carbon.dictmeta.damaged", Severity: region.Warning, Help: "The metadata of a dictionary cannot be read, or does not add up. All whole chunks of the dictionary are taken."},
	{Code: "carbon.dictmeta.missing", Severity: region.Warning, Help: "A dictionary has no metadata. All its whole chunks are taken."},
	{Code: "carbon.sortindex.damaged", Severity: region.Warning, Help: "A sort index cannot be read, or its two lists are not each other's inverse. The values are sorted instead."},
	{Code: "carbon.sortindex.missing", Severity: region.Note, Help: "No sort index belongs to a dictionary of this size. The values are sorted instead."},
	{Code: "carbon.sortindex.order", Severity: region.Warning, Help: "A sort index does not list the codes in the order of their values. CarbonData's range filters miss rows; here the values are sorted instead."},
}

func dictionarySeverity(code string) region.Severity {
	for _, c := range dictionaryCodes {
		if c.Code == code {
			return c.Severity
		}
	}
	return region.Error
}

// dictChecker verifies dictionaries.
type dictChecker struct {
	ctx    context.Context
	tree   store.Tree
	limits format.Limits
	yield  func(region.Finding)
	part   string
}

func (v *dictChecker) tell(code, column string, at fault.Span, format string, args ...any) {
	v.yield(region.Finding{Code: code, Severity: dictionarySeverity(code), At: at, Message: fmt.Sprintf(format, args...), Part: v.part, Column: column, Rows: [2]int64{-1, -1}, Lost: 0})
}

// blame tells an error about a file; what is not damage is given back.
func (v *dictChecker) blame(code, column string, err error) error {
	var e *fault.Error
	if !errors.Is(err, fault.Corrupt) || !errors.As(err, &e) {
		return err
	}
	msg := e.Reason
	if e.Path != "" {
		msg = e.Path + ": " + msg
	}
	v.tell(code, column, e.At, "%s", msg)
	return nil
}

// verify verifies the dictionaries of all columns of a table.
func (d *dictionaries) verify(ctx context.Context, cols []*column, yield func(region.Finding)) error {
	v := &dictChecker{ctx: ctx, tree: d.tree, limits: d.opts.Limits.WithDefaults(), yield: yield, part: d.dir}
	for _, root := range cols {
		var err error
		root.all(func(c *column) {
			if err == nil && c.globalCodes() {
				err = v.dictionary(path.Join(d.dir, c.id+dictExt), c)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyDictionary verifies one .dict with what belongs to it, a .dictmeta or a .sortindex.
func verifyDictionary(ctx context.Context, tg format.Target, o format.OpenOptions, yield func(region.Finding)) error {
	v := &dictChecker{ctx: ctx, tree: tg.Tree, limits: o.Limits.WithDefaults(), yield: yield, part: tg.Name}
	switch byName(tg.Name) {
	case kindDict:
		return v.dictionary(tg.Name, nil)
	case kindDictMeta:
		_, err := readLoads(ctx, tg.Tree, tg.Name, v.limits)
		return v.blame("carbon.dictmeta.damaged", "", err)
	}
	obj, err := openObject(ctx, tg.Tree, tg.Name, v.limits)
	if err != nil {
		return err
	}
	_, err = v.sortIndex(obj)
	return v.blame("carbon.sortindex.damaged", "", err)
}

func (v *dictChecker) sortIndex(obj object) (sortInfo, error) {
	b, err := obj.read(v.ctx, 0, obj.at.Len, "")
	if err != nil {
		return sortInfo{}, err
	}
	return wholeSortInfo(wire.NewCursor(b, obj.at, ""))
}

// dictionary verifies the three files of a dictionary. col may be nil: the values' type is not known then.
func (v *dictChecker) dictionary(name string, col *column) error {
	column := ""
	if col != nil {
		column = col.name
	}
	obj, err := openObject(v.ctx, v.tree, name, v.limits)
	if errors.Is(err, fs.ErrNotExist) {
		v.tell("carbon.dict.missing", column, fault.Span{Object: name}, "it is not there")
		return nil
	}
	if err != nil {
		return err
	}
	metaName := strings.TrimSuffix(name, dictExt) + dictMetaExt
	loads, err := readLoads(v.ctx, v.tree, metaName, v.limits)
	if err == nil && loads == nil {
		v.tell("carbon.dictmeta.missing", column, fault.Span{Object: metaName}, "it is not there")
	}
	if err := v.blame("carbon.dictmeta.damaged", column, err); err != nil {
		return err
	}
	b, err := obj.read(v.ctx, 0, obj.at.Len, "")
	if err != nil {
		return err
	}
	c := wire.NewCursor(b, obj.at, "")
	d := parseDictValues(c)
	end := v.extent(obj.at, loads, c, column)
	if n, err := d.whole(loads); err != nil {
		d.values = d.values[:n]
		if int64(obj.at.Len) >= end && c.Err() == nil {
			if err := v.blame("carbon.dict.counts", column, fault.Locate(err, obj.at, true, "")); err != nil {
				return err
			}
		}
	}
	v.values(obj.at, d.values, column)
	return v.order(name, obj.at.Sub(0, min(end, obj.at.Len)), d.values, col, column)
}

// extent compares the size of a dictionary with what its metadata says, and gives the end of the finished loads.
func (v *dictChecker) extent(at fault.Span, loads []dictLoad, c *wire.Cursor, column string) int64 {
	end := at.Len
	if n := len(loads); n > 0 {
		end = loads[n-1].end
	}
	switch {
	case at.Len < end:
		v.tell("carbon.dict.cut", column, at, "%d bytes, the loads wrote %d", at.Len, end)
	case c.Err() != nil && int64(c.Pos()) < end || c.Err() != nil && len(loads) == 0:
		v.blame("carbon.dict.damaged", column, c.Err())
	}
	if at.Len > end {
		v.tell("carbon.dict.unfinished", column, at.Sub(end, at.Len-end), "%d bytes behind the last finished load", at.Len-end)
	}
	return end
}

// values looks for what CarbonData never writes.
func (v *dictChecker) values(at fault.Span, values [][]byte, column string) {
	if len(values) > 0 && string(values[0]) != nullText {
		v.tell("carbon.dict.null", column, at, "the value of code 1 is %q", values[0])
	}
	seen := make(map[string]int, len(values))
	for i, x := range values {
		if k, ok := seen[string(x)]; ok {
			v.tell("carbon.dict.twice", column, at, "%q is the value of code %d and of code %d", x, k, i+1)
			return // one is enough to know
		}
		seen[string(x)] = i + 1
	}
}

// order verifies the sort index that belongs to a dictionary.
func (v *dictChecker) order(name string, at fault.Span, values [][]byte, col *column, column string) error {
	g := &globalDictionary{col: col, tree: v.tree, limits: v.limits, dict: at}
	s, file, err := g.readSortIndex(v.ctx)
	switch {
	case err != nil:
		return v.blame("carbon.sortindex.damaged", column, err)
	case s == nil:
		v.tell("carbon.sortindex.missing", column, fault.Span{Object: sortIndexNames(name, at.Len)[0]}, "it is not there")
	case len(s.codes) != len(values):
		v.tell("carbon.sortindex.order", column, fault.Span{Object: file}, "%d codes, the dictionary has %d", len(s.codes), len(values))
	case col != nil:
		if o := newDictOrder(col, values); !o.follows(col, s.codes) && !(col.typ == typeString && javaOrder(s.codes, values)) {
			v.tell("carbon.sortindex.order", column, fault.Span{Object: file}, "the codes are not in the order of their values")
		}
	}
	return nil
}

// javaOrder reports whether codes are in the order that the real writer gives texts.
func javaOrder(codes []int32, values [][]byte) bool {
	return slices.IsSortedFunc(codes, func(a, b int32) int { return javaCompare(string(values[a-1]), string(values[b-1])) })
}
