package carbon

import (
	"context"
	"fmt"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/codec"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/wire"
)

// describe12 tells what lies between header and footer in formats 1 and 2, blocklet by blocklet; inside tells what the small
// structures within the pages say, too. What is wrong with one chunk does not hide the others: the first error is given at the end.
func (f *dataFile) describe12(ctx context.Context, trace func(region.Node), inside bool) (first error) {
	for g := range f.footer.blocklet {
		for _, col := range f.columns {
			c, err := f.readChunk12(ctx, g, col)
			if err == nil && f.version == 1 {
				err = c.tellPieces(ctx, f, trace, 0, inside)
			} else if err == nil {
				err = c.describe2(ctx, f, trace, inside)
			}
			if err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// describe2 tells a column chunk of format 2.
func (c *chunkAt) describe2(ctx context.Context, f *dataFile, trace func(region.Node), inside bool) error {
	p := &c.pages[0]
	trace(region.Node{Kind: region.Struct, Name: c.path, Value: p.words(), At: f.at.Sub(c.at.Off, c.end-c.at.Off), Inner: -1})
	cur := wire.NewCursor(c.head, c.at, c.path).Trace(trace, 1)
	parseDataChunk2(thrift.NewReader(cur, thrift.Compact), "DataChunk2")
	return c.tellPieces(ctx, f, trace, 1, inside)
}

// words is how a page is stored.
func (d *dataChunk) words() string {
	s := strings.ToLower(d.encoders.String())
	if d.presence != nil && len(d.presence.bits) > 0 {
		s += ", nulls"
	}
	return s
}

// tellPieces tells data, row ids and runs of the page.
func (c *chunkAt) tellPieces(ctx context.Context, f *dataFile, trace func(region.Node), depth int, inside bool) error {
	p := &c.pages[0]
	at := []fault.Span{c.at, f.at.Sub(p.rowidAt, int64(p.rowidLen)), f.at.Sub(p.rleAt, int64(p.rleLen))}
	if f.version == 2 {
		at[0] = f.at.Sub(c.at.End(), int64(p.dataLen))
		at[1] = f.at.Sub(at[0].End(), int64(p.rowidLen))
		at[2] = f.at.Sub(at[1].End(), int64(p.rleLen))
	}
	for i, name := range []string{"data_page", "rowid_page", "rle_page"} {
		if at[i].Len == 0 {
			continue
		}
		path := name
		if depth == 0 {
			path = c.path + "." + name
		}
		if name != "rowid_page" || at[i].Len < 4 {
			value := ""
			if i == 0 {
				value = p.words()
			}
			trace(region.Node{Depth: depth, Kind: region.Data, Name: path, Value: value, At: at[i], Inner: -1})
			continue
		}
		if err := tellRowIDs(ctx, f, trace, depth, path, at[i]); err != nil {
			return err
		}
	}
	if inside && len(p.meta) == 1 {
		return c.tellMeta(f, trace, depth)
	}
	return nil
}

// tellRowIDs tells the two lists of a page of row ids.
func tellRowIDs(ctx context.Context, f *dataFile, trace func(region.Node), depth int, path string, at fault.Span) error {
	trace(region.Node{Depth: depth, Kind: region.Struct, Name: path, At: at, Inner: -1})
	head, err := f.read(ctx, at.Off, 4, path)
	if err != nil {
		return err
	}
	c := wire.NewCursor(head, at.Sub(0, 4), path).Trace(trace, depth+1)
	n := min(int64(c.U32BE("length")), at.Len-4)
	if n > 0 {
		trace(region.Node{Depth: depth + 1, Kind: region.Data, Name: "ids", At: at.Sub(4, n), Inner: -1})
	}
	if rest := at.Len - 4 - n; rest > 0 {
		trace(region.Node{Depth: depth + 1, Kind: region.Data, Name: "starts of runs", At: at.Sub(4+n, rest), Inner: -1})
	}
	return nil
}

// tellMeta tells what the serialized object within the page's metadata says; its bytes are owned already.
func (c *chunkAt) tellMeta(f *dataFile, trace func(region.Node), depth int) error {
	p := &c.pages[0]
	at := c.at
	if f.version == 1 {
		at = f.footSpan()
	}
	cur := wire.NewInnerCursor(p.meta[0], at, c.path+".encoder_meta").Trace(trace, depth+1)
	trace(region.Node{Depth: depth, Kind: region.Struct, Name: "encoder_meta", At: at, Inner: 0})
	parseMeasureMeta(be{cur})
	if pr := p.presence; cur.Err() == nil && pr != nil && f.version == 2 {
		if _, err := codec.Expand(p.codec, pr.bits, f.limits.Page, func(n int) []byte { return make([]byte, n) }); err != nil {
			return fault.Locate(err, at, false, c.path+".presence")
		}
	}
	return cur.Err()
}

// describeDictionary tells a .dict, a .dictmeta or a .sortindex.
func describeDictionary(ctx context.Context, tg format.Target, o format.OpenOptions, trace func(region.Node)) error {
	obj, err := openObject(ctx, tg.Tree, tg.Name, o.Limits)
	if err != nil {
		return err
	}
	b, err := obj.read(ctx, 0, obj.at.Len, "")
	if err != nil {
		return err
	}
	c := wire.NewCursor(b, obj.at, "").Trace(trace, 0)
	switch byName(tg.Name) {
	case kindDict:
		parseDictValues(c)
	case kindDictMeta:
		parseDictLoads(c)
	case kindSort:
		_, err = wholeSortInfo(c)
		return err
	default:
		return fault.Bugf("carbon: %s is no dictionary file", tg.Name)
	}
	if c.Err() != nil && c.Left() > 0 {
		trace(region.Node{Kind: region.Gap, Name: fmt.Sprintf("%d bytes", c.Left()), At: c.SpanOf(c.Pos(), c.Left()), Inner: -1})
	}
	return c.Err()
}
