package change

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
)

// DictionaryWay states how a load assigns codes to the values of columns with a global dictionary. The zero value is
// single-pass.
type DictionaryWay struct {
	kind string // "": single-pass
	path string // of predefined and all

	// Rows iterates over the rows of the load once more: two-pass reads their values before the load, and predefined
	// does so for columns without a file.
	Rows func() iter.Seq2[arrow.RecordBatch, error]
}

// Kinds of DictionaryWay. With the last two a value that is not in the dictionary is an error.
const (
	twoPass    = "two-pass"
	singlePass = "single-pass"
	predefined = "predefined"
	allValues  = "all"
)

// ParseDictionaryWay parses two-pass, single-pass, predefined:DIR or all:FILE. Anything else is Invalid.
func ParseDictionaryWay(s string) (w DictionaryWay, err error) {
	kind, path, has := strings.Cut(s, ":")
	wants := kind == predefined || kind == allValues
	if !slices.Contains([]string{twoPass, singlePass, predefined, allValues}, kind) || wants != has || has &&
		path == "" {
		return w, fault.Invalidf("dictionaries: expected two-pass, single-pass, predefined:DIR or all:FILE, found %q",
			s)
	}
	return DictionaryWay{kind: kind, path: path}, nil
}

// coder replaces the values of a load's dictionary columns by codes.
type coder struct {
	dir   string
	o     *schema.WriteOptions
	way   DictionaryWay
	roots []*schema.Column          // columns with dictionaries, or with children that have them
	field []int                     // field in the rows of each of roots; -1: the rows lack it
	dicts map[string]*dict.DictFile // by column id
	order []*dict.DictFile          // sorted by column id
	grows bool                      // new values are added to the dictionaries
}

// newCoder opens and locks the dictionaries of a table's columns, and adds the values that are known before the rows;
// nil if there are no dictionaries.
func newCoder(ctx context.Context, l *Load, roots []*schema.Column) (k *coder, err error) {
	k = &coder{dir: l.dir, o: &l.wo, way: l.o.Dictionary, dicts: map[string]*dict.DictFile{}}
	for i, r := range roots {
		keyed := false
		r.Walk(func(c *schema.Column) { keyed = keyed || schema.HasGlobalCodes(c) })
		if !keyed {
			continue
		}
		k.roots, k.field = append(k.roots, r), append(k.field, l.fields[i])
	}
	if len(k.roots) == 0 {
		return nil, nil
	}
	defer func() {
		if err != nil {
			k.release()
		}
	}()
	if err := k.open(ctx); err != nil {
		return nil, err
	}
	return k, k.prepare(ctx, l.sc)
}

// checkKeyed is Unsupported if rows are divided into buckets or partitions by a column with a global dictionary.
func (l *Load) checkKeyed(roots []*schema.Column) error {
	for _, r := range roots {
		by := l.schema.BucketBy
		if l.schema.Partition != nil {
			by = slices.Concat(by, l.schema.Partition.Columns)
		}
		if slices.ContainsFunc(by, func(c layout.ColumnSchema) bool { return c.ID == r.ID }) {
			return fault.Unsupportedf(fault.Span{Object: l.dir}, r.Name,
				"a bucket or partition column with a global dictionary is not supported")
		}
	}
	return nil
}

// open opens and locks all dictionaries, always in the same order, so that two loads do not deadlock.
func (k *coder) open(ctx context.Context) error {
	var leaves []*schema.Column
	for _, r := range k.roots {
		r.Walk(func(c *schema.Column) {
			if schema.HasGlobalCodes(c) {
				leaves = append(leaves, c)
			}
		})
	}
	slices.SortFunc(leaves, func(a, b *schema.Column) int { return strings.Compare(a.ID, b.ID) })
	for _, c := range leaves {
		d, err := dict.OpenDict(ctx, k.dir, c)
		if err != nil {
			return err
		}
		k.dicts[c.ID] = d
		k.order = append(k.order, d)
	}
	return nil
}

// release releases the locks.
func (k *coder) release() {
	if k == nil {
		return
	}
	for _, d := range k.order {
		if d.Unlock != nil {
			d.Unlock()
			d.Unlock = nil
		}
	}
}

// prepare adds all values to the dictionaries before the first row, unless the dictionaries grow with the rows.
func (k *coder) prepare(ctx context.Context, sc *arrow.Schema) error {
	if k.way.kind == "" || k.way.kind == singlePass {
		k.grows = true
		return nil
	}
	var found map[string]map[string]bool // values by column id
	var err error
	switch k.way.kind {
	case twoPass:
		found, err = k.collect(ctx, nil)
	case predefined:
		found, err = k.predefined(ctx)
	case allValues:
		found, err = k.listed(sc)
	}
	if err != nil {
		return err
	}
	for _, d := range k.order {
		if err := d.AddAll(found[d.ID]); err != nil {
			return err
		}
	}
	return k.save()
}

// save writes the new values and releases the locks.
func (k *coder) save() error {
	for _, d := range k.order {
		if _, err := d.Add(schema.NullText); err != nil {
			return err
		}
		if err := d.Save(); err != nil {
			return err
		}
	}
	k.release()
	return nil
}

// collect reads the rows and returns the values of all dictionary columns except those in known, by column id.
func (k *coder) collect(ctx context.Context, known map[string]bool) (map[string]map[string]bool, error) {
	found := map[string]map[string]bool{}
	for _, d := range k.order {
		if !known[d.ID] {
			found[d.ID] = map[string]bool{}
		}
	}
	if len(found) == 0 {
		return found, nil
	}
	if k.way.Rows == nil {
		return nil, fault.Invalidf("dictionaries: two-pass needs DictionaryWay.Rows")
	}
	row := int64(0)
	for b, err := range k.way.Rows() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		err = k.each(b, func(d *dict.DictFile, text string, _ int) (uint32, error) {
			if set := found[d.ID]; set != nil {
				set[text] = true
			}
			return schema.NullCode, nil
		}, nil)
		if err != nil {
			return nil, datafile.Located(err, row)
		}
		row += b.NumRows()
	}
	return found, nil
}

// predefined reads the files of a directory: each is a CSV file whose first field has the values of the column that the
// file is named after. The values of other columns are collected from the rows.
func (k *coder) predefined(ctx context.Context) (map[string]map[string]bool, error) {
	entries, err := os.ReadDir(k.way.path)
	if err != nil {
		return nil, err
	}
	given := map[string]map[string]bool{}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		full := filepath.Join(k.way.path, e.Name())
		d := k.named(e.Name())
		if d == nil {
			return nil, fault.Invalidf("%s: expected the name of a column with a global dictionary (%s)", full,
				k.names())
		}
		if given[d.ID] == nil {
			given[d.ID] = map[string]bool{}
		}
		if err := readFirst(d, full, given[d.ID]); err != nil {
			return nil, err
		}
	}
	known := map[string]bool{}
	for id := range given {
		known[id] = true
	}
	found, err := k.collect(ctx, known)
	for id, values := range given {
		if found != nil {
			found[id] = values
		}
	}
	return found, err
}

// named returns the dictionary of the column that a file is named after, with or without an extension. The items of a
// list can also be named after the list.
func (k *coder) named(file string) *dict.DictFile {
	stem := strings.TrimSuffix(file, filepath.Ext(file))
	for _, d := range k.order {
		for _, n := range []string{d.Name, strings.TrimSuffix(d.Name, ".val")} {
			if strings.EqualFold(n, file) || strings.EqualFold(n, stem) {
				return d
			}
		}
	}
	return nil
}

func (k *coder) names() string {
	var out []string
	for _, d := range k.order {
		out = append(out, d.Name)
	}
	return strings.Join(out, ", ")
}

// listed reads a file of lines INDEX,VALUE: the ordinal of a column of the rows, from 0, and one of the column's
// values, which extends to the end of the line. Values of lists and structs are separated by $, one level deeper by
// colons.
func (k *coder) listed(sc *arrow.Schema) (map[string]map[string]bool, error) {
	found := map[string]map[string]bool{}
	for _, d := range k.order {
		found[d.ID] = map[string]bool{}
	}
	f, err := os.Open(k.way.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	for line := 1; in.Scan(); line++ {
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		index, value, ok := strings.Cut(in.Text(), ",")
		n, err := strconv.Atoi(strings.TrimSpace(index))
		if !ok || err != nil || n < 0 || n >= sc.NumFields() {
			return nil, fault.Invalidf("%s, line %d: expected INDEX,VALUE with INDEX from 0 to %d", k.way.path, line,
				sc.NumFields()-1)
		}
		at := slices.Index(k.field, n)
		if at < 0 {
			continue // CarbonData's loader skips columns without a dictionary, too
		}
		if err := k.split(k.roots[at], value, "$", found); err != nil {
			return nil, fault.Invalidf("%s, line %d: %v", k.way.path, line, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fault.Invalidf("%s: %v", k.way.path, err)
	}
	return found, nil
}

// split adds a value to found; of a list or struct it adds each part.
func (k *coder) split(c *schema.Column, value, by string, found map[string]map[string]bool) error {
	if !c.Type.Complex() {
		d := k.dicts[c.ID]
		if d == nil {
			return nil
		}
		text, err := normalText(d, value)
		if err == nil {
			found[c.ID][text] = true
		}
		return err
	}
	for i, part := range strings.Split(value, by) {
		child := c.Children[0]
		if c.Type == layout.TypeStruct {
			if i >= len(c.Children) {
				return fault.Invalidf("%q has more parts than %s has children", value, c.Name)
			}
			child = c.Children[i]
		}
		if err := k.split(child, part, ":", found); err != nil {
			return err
		}
	}
	return nil
}

// each calls lookup for every value of a batch and then, unless to is nil, calls to with each column of codes and its
// field.
func (k *coder) each(b arrow.RecordBatch, lookup func(d *dict.DictFile, text string, row int) (uint32, error),
	to func(field int, codes arrow.Array)) error {
	for i, r := range k.roots {
		if k.field[i] < 0 {
			continue
		}
		a := b.Column(k.field[i])
		if r.Type.Complex() { // a copy has only items that belong to rows
			var err error
			if a, err = array.Concatenate([]arrow.Array{a}, memory.DefaultAllocator); err != nil {
				return err
			}
			defer a.Release()
		}
		codes, err := k.codesOf(r, a, lookup)
		if err != nil {
			return datafile.InColumn(err, r)
		}
		if to != nil {
			to(k.field[i], codes)
		}
		codes.Release()
	}
	return nil
}

// codesOf is a with the values of dictionary columns replaced by codes (int32, never null).
func (k *coder) codesOf(c *schema.Column, a arrow.Array,
	lookup func(d *dict.DictFile, text string, row int) (uint32, error)) (arrow.Array, error) {
	d := k.dicts[c.ID]
	switch {
	case d != nil:
		return k.leaf(d, a, lookup)
	case !c.Type.Complex():
		a.Retain()
		return a, nil
	}
	if e, ok := a.(array.ExtensionArray); ok {
		return k.codesOf(c, e.Storage(), lookup)
	}
	children := make([]arrow.ArrayData, len(c.Children))
	fields := make([]arrow.Field, len(c.Children))
	for i, child := range c.Children {
		below, err := nestedArray(c, a, i)
		if err != nil {
			return nil, err
		}
		defer below.Release()
		codes, err := k.codesOf(child, below, lookup)
		if err != nil {
			var v *page.ValueError
			if errors.As(err, &v) {
				v.Row = 0 // the index of an item is not a row number
			}
			return nil, err
		}
		defer codes.Release()
		children[i], fields[i] = codes.Data(), arrow.Field{Name: child.LeafName(), Type: codes.DataType(),
			Nullable: true}
	}
	var t arrow.DataType
	switch a.DataType().(type) {
	case *arrow.StructType:
		t = arrow.StructOf(fields...)
	case *arrow.LargeListType:
		t = arrow.LargeListOf(fields[0].Type)
	case *arrow.FixedSizeListType:
		t = arrow.FixedSizeListOf(a.DataType().(*arrow.FixedSizeListType).Len(), fields[0].Type)
	default:
		t = arrow.ListOf(fields[0].Type)
	}
	data := array.NewData(t, a.Len(), a.Data().Buffers(), children, a.NullN(), a.Data().Offset())
	defer data.Release()
	return array.MakeFromData(data), nil
}

// nestedArray returns child i of a list or struct with all its entries, regardless of the offset of a.
func nestedArray(c *schema.Column, a arrow.Array, i int) (arrow.Array, error) {
	switch a := a.(type) {
	case *array.Struct:
		return array.MakeFromData(a.Data().Children()[i]), nil
	case *array.List, *array.LargeList, *array.FixedSizeList:
		v := a.(array.ListLike).ListValues()
		v.Retain()
		return v, nil
	}
	return nil, fault.Unsupportedf(fault.Span{}, c.Name, "values of %s with a global dictionary", a.DataType())
}

// leaf replaces the values of one array by codes.
func (k *coder) leaf(d *dict.DictFile, a arrow.Array,
	lookup func(d *dict.DictFile, text string, row int) (uint32, error)) (arrow.Array, error) {
	plain := *d.ColumnSchema
	plain.Encoders = nil
	c := &schema.Column{ColumnSchema: &plain, Parent: d.Parent}
	x := &page.Cells{}
	if err := x.Add(c, a, 0, a.Len(), k.o); err != nil {
		return nil, err
	}
	b := array.NewInt32Builder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(a.Len())
	for i := range a.Len() {
		code := uint32(schema.NullCode)
		if !x.Null(i) {
			var err error
			if code, err = lookup(d, page.ValueText(c, x, i), i); err != nil {
				return nil, err
			}
		}
		b.UnsafeAppend(int32(code))
	}
	return b.NewArray(), nil
}

// codes returns the code of a value in a row to be loaded. Unless dictionaries grow, a value without a code is a
// page.ValueError.
func (k *coder) codes(d *dict.DictFile, text string, row int) (uint32, error) {
	if k.grows {
		return d.Add(text)
	}
	if c := d.Code(text); c != 0 {
		return c, nil
	}
	return 0, page.ValueErrorf(row, "the value %q is not in the %s dictionary of column %s", text, k.way.kind, d.Name)
}

// coded returns a batch with codes in place of values.
func (k *coder) coded(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := slices.Clone(b.Columns())
	fields := slices.Clone(b.Schema().Fields())
	err := k.each(b, k.codes, func(i int, codes arrow.Array) {
		codes.Retain()
		cols[i], fields[i].Type = codes, codes.DataType()
	})
	defer func() {
		for i, c := range cols {
			if c != b.Column(i) {
				c.Release()
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows()), nil
}

// schema returns the schema of coded batches.
func (k *coder) schema(sc *arrow.Schema) (*arrow.Schema, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	none := b.NewRecordBatch()
	defer none.Release()
	coded, err := k.coded(none)
	if err != nil {
		return nil, err
	}
	defer coded.Release()
	return coded.Schema(), nil
}

// measure sets the cardinalities of the columns of a plan.
func (k *coder) measure(p *datafile.WritePlan) {
	for _, c := range p.Columns {
		if d := k.dicts[c.ID]; d != nil {
			c.SetCardinality(max(1, len(d.Values)))
		}
	}
}

// normalText returns the text under which a dictionary stores the value that s stands for. A text that is not a value
// of the column's type is Invalid.
func normalText(d *dict.DictFile, s string) (string, error) {
	if d.Type == layout.TypeString || s == schema.NullText {
		return s, nil
	}
	v, err := schema.ParseValue(d.Column, s, nil)
	if err != nil || v.Null {
		return "", fault.Invalidf("%q is not a value of type %s", s, d.Type)
	}
	x := &page.Cells{N: 1}
	switch d.Type {
	case layout.TypeDouble:
		x.Nums = append(x.Nums, v.F)
	case layout.TypeDecimal:
		if !v.D.FitsInPrecision(d.Precision) {
			return "", fault.Invalidf("%q has more than %d digits", s, d.Precision)
		}
		x.Decs = append(x.Decs, v.D)
	default:
		x.Ints = append(x.Ints, v.I)
	}
	return page.ValueText(d.Column, x, 0), nil
}

// readFirst adds the first field of every line of a CSV file to into.
func readFirst(d *dict.DictFile, file string, into map[string]bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(bufio.NewReader(f))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.Invalidf("%s: %v", file, err)
		}
		line, _ := r.FieldPos(0)
		text, err := normalText(d, fields[0])
		if err != nil {
			return fault.Invalidf("%s, line %d: %v", file, line, err)
		}
		into[text] = true
	}
}
