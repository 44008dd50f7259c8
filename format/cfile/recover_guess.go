package cfile

import (
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
)

// guess sets the footer from the options and tries all values of what they leave open: the encodings of the type, the
// compressions, and blocks with and without null bitmaps. A block must have the assumed structure and be followed by
// its checksum, so wrong guesses usually find nothing. The guess that covers the most bytes is chosen. If two cover
// equally many, the user must decide, and the error is Corrupt. Without checksums nothing is guessed, because too many
// byte sequences look like a block.
func (r *recovery) guess(f *columnfile.File, opts columnfile.ReadOptions) error {
	all := opts.Candidates()
	if len(all) > 1 && opts.NoChecksums {
		return fault.Corruptf(f.At, "", "blocks without checksums are not recognized by trying: pass encoding=, "+
			"compression= and nullable=")
	}
	var best columnfile.Candidate
	var tied []string
	for _, window := range []int64{min(columnfile.GuessWindow, f.At.Len), f.At.Len} {
		for _, o := range all {
			if err := r.assume(f, o); err != nil {
				return err
			}
			c, err := r.tryOptions(o, window)
			if err != nil {
				return err
			}
			switch {
			case c.Bytes > best.Bytes:
				best, tied = c, nil
			case c.Bytes == best.Bytes && c.Bytes > 0 && !c.Same(best):
				tied = append(tied, o.Form())
			}
		}
		if best.Bytes > 0 && len(tied) == 0 || window == f.At.Len {
			break
		}
		best, tied = columnfile.Candidate{}, nil
	}
	switch {
	case best.Bytes == 0 && f.At.Len > int64(len(f.Head)+8):
		return fault.Corruptf(f.At, "", "no block of type %s was found that fits %s; perhaps the file holds "+
			"something else", opts.Typ, opts.FormSoFar())
	case best.Bytes == 0:
		best.Opts = all[0]
	case len(tied) > 0:
		return fault.Corruptf(f.At, "", "as many blocks fit %s, or %s: pass the right options", best.Opts.Form(),
			strings.Join(tied, ", or "))
	}
	if len(all) > 1 {
		r.Report("cfile.recovered.guessed", f.At, "", "the blocks fit %s", best.Opts.Form())
	}
	r.guessed = best.Bytes > 0
	return r.assume(f, best.Opts)
}

// tryOptions finds the blocks in the first window bytes of the file, assuming the properties that o states.
func (r *recovery) tryOptions(o columnfile.ReadOptions, window int64) (c columnfile.Candidate, err error) {
	if r.data == nil {
		if err := r.load(); err != nil {
			return c, err
		}
	}
	r.budget, r.vals = 16*window+1<<20, nil
	blocks, _ := r.searchRange(nil, int64(len(r.f.Head)), window, 0, -1)
	if r.vals, c.Opts = nil, o; r.isDictionary(o, blocks) {
		return c, r.ctx.Err()
	}
	if o.Encoding == block.Dict && len(blocks) > 0 { // a dictionary alone is a block of plain values
		last := blocks[len(blocks)-1].Ptr
		r.dictionary(last.Offset+last.Size, window)
		if d := r.f.Footer.Dict; d != nil {
			c.Bytes = d.Size
		}
	}
	for i, b := range blocks {
		if i == 0 {
			c.First = b.Ptr
		}
		c.Rows += b.Rows
		c.Bytes += b.Ptr.Size
	}
	return c, r.ctx.Err()
}

// isDictionary reports whether blocks found as plain strings are only the dictionary of a file whose codes are damaged.
// A dictionary begins with entry 0, like the block that has row 0, but lies after the data blocks and not right after
// the header.
func (r *recovery) isDictionary(o columnfile.ReadOptions, blocks []columnfile.DataBlock) bool {
	if o.Encoding != block.Plain || !o.Typ.IsBinary() || len(blocks) == 0 || blocks[0].First != 0 ||
		len(r.f.Head) < block.Tail {
		return false
	}
	begin := int64(block.Tail) + int64(block.Le32(r.f.Head[block.MagicLen:]))
	if !o.NoChecksums {
		begin += 4
	}
	return blocks[0].Ptr.Offset > begin
}

// guessOr tries the type in the options first, and falls back on f, whose footer is damaged.
func (r *recovery) guessOr(f *columnfile.File, at fault.Span, o format.OpenOptions, opts columnfile.ReadOptions) error {
	if opts.Typ >= 0 {
		g, _ := columnfile.OpenFile(r.ctx, f.Src, at, o)
		g.NoVerify = f.NoVerify
		reported := r.found
		if err := r.guess(g, opts); err == nil && r.guessed {
			if id, ok := f.Footer.Get(block.SetKey); ok {
				r.f.Footer.Meta = []block.MetaPair{{Key: block.SetKey, Value: id}}
			}
			return nil
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.found = reported
	}
	r.f = f
	return nil
}

// flipBack repairs the footer if exactly one bit of it or of its checksum was flipped, and makes r use the repaired
// file.
func (r *recovery) flipBack() bool {
	f, at := r.f.FlipBack(r.ctx)
	if f == nil {
		return false
	}
	r.f, r.suspect = f, f.NoVerify
	r.Report("cfile.footer.mended", at, "footer", "one bit of the footer, or of its checksum, is another: with that "+
		"bit flipped back the two agree")
	return true
}

// ofOurs are words in the metadata that our writer adds to a footer; Kudu's footers have none of them.
var ofOurs = []string{"stoa", "precision", "nullable", "scale"}

// digits returns an error if the values are decimals and nothing proves their scale. The scale comes from the footer,
// whose checksum is wrong, and a wrong scale would change every value. A user who states the type either knows the
// scale or gets the unscaled values. Kudu's files have no scale; their values are returned unscaled.
func (r *recovery) digits(opts columnfile.ReadOptions) error {
	t, foot := r.f.Footer.Type, string(r.f.Foot)
	if opts.Scale >= 0 || opts.Typ >= 0 || t != block.Decimal32 && t != block.Decimal64 && t != block.Decimal128 ||
		!slices.ContainsFunc(ofOurs, func(word string) bool { return strings.Contains(foot, word) }) {
		return nil
	}
	return fault.Corruptf(r.f.FootSpan(), "footer.metadata["+block.FieldKey+"]", "the scale of the decimals is not "+
		"known, as the footer is damaged; if you know it, pass scale=")
}
