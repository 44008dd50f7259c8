package cfile

import (
	"fmt"
	"strings"

	"stoa/fault"
	"stoa/region"
)

// guessWindow is how much of a file's beginning is searched for its encoding.
const guessWindow = 4 << 20

// guess fills the footer from the options. What they leave open is tried: the encodings of the type, the compressions, and blocks
// with and without null bitmaps. A block must have the structure that is tried, and its checksum behind it, so what is not right finds
// nothing, as a rule. What covers the most bytes is taken; if two do, they must be told apart by whoever knows. Without checksums
// nothing is guessed: too much looks like a block.
func (r *recovery) guess(f *file, opts readOptions) error {
	all := opts.candidates()
	if len(all) > 1 && opts.noChecksums {
		return fault.Corruptf(f.at, "", "blocks without checksums are not recognized by trying: say encoding=, compression= and nullable=")
	}
	var best candidate
	var tied []string
	for _, window := range []int64{min(guessWindow, f.at.Len), f.at.Len} {
		for _, o := range all {
			if err := r.assume(f, o); err != nil {
				return err
			}
			c, err := r.try(o, window)
			if err != nil {
				return err
			}
			switch {
			case c.bytes > best.bytes:
				best, tied = c, nil
			case c.bytes == best.bytes && c.bytes > 0 && !c.same(best):
				tied = append(tied, o.form())
			}
		}
		if best.bytes > 0 && len(tied) == 0 || window == f.at.Len {
			break
		}
		best, tied = candidate{}, nil
	}
	switch {
	case best.bytes == 0 && f.at.Len > int64(len(f.head)+8):
		return fault.Corruptf(f.at, "", "no block of type %s was found that fits %s; perhaps the file holds something else", opts.typ, opts.told())
	case best.bytes == 0:
		best.opts = all[0]
	case len(tied) > 0:
		return fault.Corruptf(f.at, "", "as many blocks fit %s, or %s: say which it is", best.opts.form(), strings.Join(tied, ", or "))
	}
	if len(all) > 1 {
		r.found = append(r.found, region.Finding{Code: "cfile.recovered.guessed", Severity: region.Warning, At: f.at, Part: r.part, Rows: [2]int64{-1, -1}, Lost: -1,
			Message: fmt.Sprintf("the blocks fit %s", best.opts.form())})
	}
	r.guessed = best.bytes > 0
	return r.assume(f, best.opts)
}

// candidate is what a guess finds.
type candidate struct {
	opts  readOptions
	bytes int64 // of the blocks
	rows  int64
	first blockPtr
}

// same reports whether two candidates differ in a codec only, and found the same blocks: such as are stored as they are.
func (c candidate) same(d candidate) bool {
	c.opts.compression = d.opts.compression
	return c.rows == d.rows && c.first == d.first && c.opts.form() == d.opts.form()
}

// candidates are the options with all that they leave open.
func (o readOptions) candidates() (out []readOptions) {
	encodings, codecs, nulls := []Encoding{o.encoding}, []Compression{o.compression}, []bool{o.nullable}
	if o.encoding == AutoEncoding {
		encodings = types[o.typ].encodings
	}
	if o.compression == DefaultCompression {
		codecs = []Compression{NoCompression, LZ4, Snappy, Zlib}
	}
	if !o.saysNulls {
		nulls = []bool{false, true}
	}
	for _, o.encoding = range encodings {
		for _, o.compression = range codecs {
			for _, o.nullable = range nulls {
				out = append(out, o)
			}
		}
	}
	return out
}

// form is what the options say of the blocks, as options.
func (o readOptions) form() string {
	return fmt.Sprintf("encoding=%s compression=%s nullable=%t", o.encoding, o.compression, o.nullable)
}

// told is form with what the options leave open.
func (o readOptions) told() string {
	s := o.form()
	if o.encoding == AutoEncoding {
		s = strings.Replace(s, o.encoding.String(), "any", 1)
	}
	if o.compression == DefaultCompression {
		s = strings.Replace(s, o.compression.String(), "any", 1)
	}
	if !o.saysNulls {
		s = strings.Replace(s, "nullable=false", "nullable=any", 1)
	}
	return fmt.Sprintf("%s checksums=%t", s, !o.noChecksums)
}

// try finds the blocks of the first bytes.
func (r *recovery) try(o readOptions, window int64) (c candidate, err error) {
	if r.data == nil {
		if err := r.load(); err != nil {
			return c, err
		}
	}
	r.work, r.vals = 16*window+1<<20, nil
	blocks, _ := r.between(nil, int64(len(r.f.head)), window, 0, -1)
	r.vals, c.opts = nil, o
	if o.encoding == Dict && len(blocks) > 0 { // which is a block of plain values by itself
		last := blocks[len(blocks)-1].ptr
		r.dictionary(last.offset+last.size, window)
		if d := r.f.footer.Dict; d != nil {
			c.bytes = d.size
		}
	}
	for i, b := range blocks {
		if i == 0 {
			c.first = b.ptr
		}
		c.rows += b.rows
		c.bytes += b.ptr.size
	}
	return c, r.ctx.Err()
}
