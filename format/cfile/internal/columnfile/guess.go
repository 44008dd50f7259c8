package columnfile

import (
	"fmt"
	"strings"

	"stoa/format/cfile/internal/block"
)

// GuessWindow is the number of bytes at the beginning of a file that are searched for its encoding first.
const GuessWindow = 4 << 20

// Candidate is a guess of the options, with the blocks found under it.
type Candidate struct {
	Opts  ReadOptions
	Bytes int64          // size of the blocks and the dictionary
	Rows  int64          // total of the blocks
	First block.BlockPtr // the first block
}

// Same reports whether two candidates differ in nothing but the codec and found the same blocks, which are then not
// compressed.
func (c Candidate) Same(d Candidate) bool {
	c.Opts.Compression = d.Opts.Compression
	return c.Rows == d.Rows && c.First == d.First && c.Opts.Form() == d.Opts.Form()
}

// Candidates returns the options completed in all possible ways: one candidate for each combination of values of the
// properties that they leave open.
func (o ReadOptions) Candidates() (out []ReadOptions) {
	encodings, codecs, nulls := []block.Encoding{o.Encoding}, []block.Compression{o.Compression}, []bool{o.Nullable}
	if o.Encoding == block.AutoEncoding {
		encodings = block.Types[o.Typ].Encodings
	}
	if o.Compression == block.DefaultCompression {
		codecs = []block.Compression{block.NoCompression, block.LZ4, block.Snappy, block.Zlib}
	}
	if !o.NullableSet {
		nulls = []bool{false, true}
	}
	for _, o.Encoding = range encodings {
		for _, o.Compression = range codecs {
			for _, o.Nullable = range nulls {
				out = append(out, o)
			}
		}
	}
	return out
}

// Form formats the options that determine the form of blocks.
func (o ReadOptions) Form() string {
	return fmt.Sprintf("encoding=%s compression=%s nullable=%t", o.Encoding, o.Compression, o.Nullable)
}

// FormSoFar is Form with "any" for the properties that the options leave open.
func (o ReadOptions) FormSoFar() string {
	s := o.Form()
	if o.Encoding == block.AutoEncoding {
		s = strings.Replace(s, o.Encoding.String(), "any", 1)
	}
	if o.Compression == block.DefaultCompression {
		s = strings.Replace(s, o.Compression.String(), "any", 1)
	}
	if !o.NullableSet {
		s = strings.Replace(s, "nullable=false", "nullable=any", 1)
	}
	return fmt.Sprintf("%s checksums=%t", s, !o.NoChecksums)
}
