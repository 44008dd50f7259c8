package write

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/parquet/internal/meta"
	"stoa/internal/dremel"
)

// sampleBytes is the number of bytes of a page that are encoded and compressed in each candidate encoding.
const sampleBytes = 64 << 10

// choose decides, from a chunk's first page with values, whether the chunk gets a dictionary, and which encoding it has
// otherwise.
func (c *ChunkWriter) choose() error {
	best, err := c.tryEncodings()
	if err != nil {
		return err
	}
	c.dictState = dictNone
	if !c.o.dict {
		return nil
	}
	c.dict = c.dictionary(c.dict, c.width())
	var ok bool
	if c.codes, ok = c.dict.codes(c.codes[:0], c.page, true); ok {
		cost, err := c.dictionaryCost()
		if err != nil {
			return err
		}
		if cost <= best*float64(c.page.n) {
			c.dictState = dictActive
			return nil
		}
	}
	c.tried, c.dict = c.dict, nil
	return nil
}

// dictionaryCost estimates the bytes of the page and of its share of the dictionary. After a full page, more pages are
// expected, which use the same dictionary.
func (c *ChunkWriter) dictionaryCost() (float64, error) {
	stored := func(b []byte) (float64, error) {
		if c.o.compress == nil {
			return float64(len(b)), nil
		}
		var err error
		c.compressed, err = c.o.compress(c.compressed[:0], b)
		return float64(min(len(c.compressed), len(b))), err
	}
	c.spare = c.encoded(c.spare[:0], meta.PlainValues, c.dict.values())
	values, err := stored(c.spare)
	if err != nil {
		return 0, err
	}
	if c.full() {
		const pages = 4
		values *= dictionaryGrowth(float64(c.page.n), float64(c.dict.n), pages) / pages
	}
	c.spare = dremel.AppendCodes(c.spare[:0], c.codes, uint32(c.dict.n-1))
	codes, err := stored(c.spare)
	return values + codes, err
}

// dictionaryGrowth returns the factor by which a dictionary with d values after n entries grows after times as many
// entries, if entries are drawn at random from a fixed set: of D values, D·(1-exp(-n/D)) have occurred after n.
func dictionaryGrowth(n, d, times float64) float64 {
	after := func(n, all float64) float64 { return all * -math.Expm1(-n/all) }
	lo, hi := d, 1e6*n
	for range 60 {
		if mid := math.Sqrt(lo * hi); after(n, mid) < d {
			lo = mid
		} else {
			hi = mid
		}
	}
	return after(times*n, hi) / d
}

// pageValues returns the values [from, to) of the page.
func (c *ChunkWriter) pageValues(from, to int) dense {
	v := dense{n: to - from, data: c.page.data}
	if w := c.width(); w > 0 {
		v.fixed = c.page.fixed[from*w : to*w]
	} else {
		v.offs = c.page.offs[from : to+1]
	}
	return v
}

// chooseEncoding chooses the encoding of pages without a dictionary.
func (c *ChunkWriter) chooseEncoding() error {
	_, err := c.tryEncodings()
	return err
}

// tryEncodings encodes and compresses a sample in every encoding that fits the type, chooses the smallest, and returns
// its bytes per value. PLAIN is fastest to read, so another encoding must save at least 3 %.
func (c *ChunkWriter) tryEncodings() (best float64, err error) {
	c.encoding = meta.PlainValues
	candidates := []int32{meta.PlainValues}
	if c.o.auto {
		switch {
		case c.phys == meta.TypeInt32 || c.phys == meta.TypeInt64:
			candidates = append(candidates, meta.DeltaBinaryPacked)
		case c.phys == meta.TypeFloat || c.phys == meta.TypeDouble:
			candidates = append(candidates, meta.ByteStreamSplit)
		case c.phys == meta.TypeBytes && c.Leaf.Type.ID() != arrow.DICTIONARY:
			// pyarrow cannot read other encodings as dictionaries.
			candidates = append(candidates, meta.DeltaLengths, meta.DeltaByteArray)
		}
	}
	sample := c.sample()
	best = math.Inf(1)
	for _, encoding := range candidates {
		c.spare = c.encoded(c.spare[:0], encoding, sample)
		n := len(c.spare)
		if c.o.compress != nil {
			if c.compressed, err = c.o.compress(c.compressed[:0], c.spare); err != nil {
				return 0, err
			}
			n = len(c.compressed)
		}
		if cost := float64(n) / float64(sample.n); cost < best*0.97 {
			best, c.encoding = cost, encoding
		}
	}
	return best, nil
}

// sample returns some values from the middle of the page.
func (c *ChunkWriter) sample() dense {
	n := c.page.n
	if c.phys == meta.TypeFloat || c.phys == meta.TypeDouble {
		return c.pageValues(0, n) // byte streams save bytes only if each one fills a block of the compressor
	}
	if w := c.width(); w > 0 {
		n = min(n, max(1, sampleBytes/w))
	} else if all := len(c.page.data) + 4*c.page.n; all > sampleBytes {
		n = max(min(n, 1), int(int64(n)*sampleBytes/int64(all)))
	}
	from := (c.page.n - n) / 2
	return c.pageValues(from, from+n)
}

// encodings returns the encodings used in the chunk, ascending.
func (c *ChunkWriter) encodings() (out []int32) {
	if c.MaxDef > 0 || c.MaxRep > 0 {
		out = append(out, meta.RleLevels)
	}
	if c.hasDictionary() {
		out = append(out, c.dictionaryEncoding())
	}
	for i := range c.pages {
		out = append(out, c.pages[i].encoding)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *ChunkWriter) hasDictionary() bool {
	return c.dictState == dictActive || c.dictState == dictFull || c.dictState == dictRetired
}

func (c *ChunkWriter) dictionaryEncoding() int32 {
	if c.o.version == 1 {
		return meta.PlainDictionary
	}
	return meta.PlainValues
}
