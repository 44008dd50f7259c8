package parquet

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/dremel"
)

// sampleBytes is how much of a page is encoded and compressed in every way that is tried.
const sampleBytes = 64 << 10

// choose decides, by the first page of a chunk that has values, whether it gets a dictionary, and how it is encoded otherwise.
func (c *chunkWriter) choose() error {
	best, err := c.tried()
	if err != nil {
		return err
	}
	c.mode = uncoded
	if !c.o.dict {
		return nil
	}
	if c.dict == nil {
		c.dict = newDictionary(c.width())
	}
	half := c.part(0, c.page.n/2)
	var ok bool
	if c.codes, ok = c.dict.codes(c.codes[:0], half, true); !ok {
		return nil
	}
	before := c.dict.n
	if c.codes, ok = c.dict.codes(c.codes, c.part(c.page.n/2, c.page.n), false); !ok {
		return nil
	}
	cost, err := c.dictionaryCost(before)
	if err == nil && cost <= best*float64(c.page.n) {
		c.mode = coded
	}
	return err
}

// dictionaryCost is about how many bytes the page and its share of the dictionary take. A dictionary of which most values came in the first half of a
// full page serves the pages to come as well.
func (c *chunkWriter) dictionaryCost(before int) (float64, error) {
	stored := func(b []byte) (float64, error) {
		if c.o.squeeze == nil {
			return float64(len(b)), nil
		}
		var err error
		c.squeezed, err = c.o.squeeze(c.squeezed[:0], b)
		return float64(min(len(c.squeezed), len(b))), err
	}
	values, err := stored(c.encoded(c.vals[:0], plain, c.dict.values()))
	if err != nil {
		return 0, err
	}
	if c.filled() >= c.o.pageSize {
		fresh := float64(c.dict.n-before) / float64(c.dict.n)
		values *= min(1, max(2*fresh, 1./8))
	}
	codes, err := stored(dremel.AppendCodes(c.vals[:0], c.codes, uint32(c.dict.n-1)))
	return values + codes, err
}

// part is some values of the page.
func (c *chunkWriter) part(from, to int) dense {
	v := dense{n: to - from, data: c.page.data}
	if w := c.width(); w > 0 {
		v.fixed = c.page.fixed[from*w : to*w]
	} else {
		v.offs = c.page.offs[from : to+1]
	}
	return v
}

// chooseEncoding decides how pages without dictionary are encoded.
func (c *chunkWriter) chooseEncoding() error {
	_, err := c.tried()
	return err
}

// tried encodes and compresses a sample in every way that fits the type, keeps the way that takes fewest bytes, and tells how many these are for
// a value. PLAIN is quickest to read: another one must save something.
func (c *chunkWriter) tried() (best float64, err error) {
	c.encoding = plain
	ways := []int32{plain}
	if c.o.auto {
		switch {
		case c.phys == typeInt32 || c.phys == typeInt64:
			ways = append(ways, deltaBinaryPacked)
		case c.phys == typeFloat || c.phys == typeDouble:
			ways = append(ways, byteStreamSplit)
		case c.phys == typeBytes && c.Leaf.Type.ID() != arrow.DICTIONARY: // pyarrow makes dictionaries of no other encodings
			ways = append(ways, deltaLengths, deltaByteArray)
		}
	}
	sample := c.sample()
	best = math.Inf(1)
	for _, way := range ways {
		c.vals = c.encoded(c.vals[:0], way, sample)
		n := len(c.vals)
		if c.o.squeeze != nil {
			if c.squeezed, err = c.o.squeeze(c.squeezed[:0], c.vals); err != nil {
				return 0, err
			}
			n = len(c.squeezed)
		}
		if cost := float64(n) / float64(sample.n); cost < best*0.97 {
			best, c.encoding = cost, way
		}
	}
	c.vals = c.vals[:0]
	return best, nil
}

// sample is some values in the middle of the page.
func (c *chunkWriter) sample() dense {
	n := c.page.n
	if w := c.width(); w > 0 {
		n = min(n, sampleBytes/w)
	} else if all := len(c.page.data) + 4*c.page.n; all > sampleBytes {
		n = max(min(n, 1), int(int64(n)*sampleBytes/int64(all)))
	}
	from := (c.page.n - n) / 2
	return c.part(from, from+n)
}

// encodings are those of the chunk, ascending.
func (c *chunkWriter) encodings() (out []int32) {
	if c.MaxDef > 0 || c.MaxRep > 0 {
		out = append(out, rleLevels)
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

func (c *chunkWriter) hasDictionary() bool { return c.mode == coded || c.mode == codedBefore }

func (c *chunkWriter) dictionaryEncoding() int32 {
	if c.o.version == 1 {
		return plainDictionary
	}
	return plain
}
