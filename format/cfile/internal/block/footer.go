package block

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"stoa/fault"
	"stoa/internal/codec"
	"stoa/internal/pb"
	"stoa/internal/sum"
	"stoa/wire"
)

// ParseFooter reads a footer, which c holds exactly:
//
//	checksum  u32, CRC-32C of all that follows; only if the features in the message say so
//	message   CFileFooterPB
//	magic     8
//	length    u32, of the message
func ParseFooter(c *wire.Cursor, checksums bool) (f Footer, fr Frame) {
	fr.size = c.Left()
	if checksums {
		fr.Stored = c.U32("checksum")
		fr.Computed = sum.CRC32C(c.Rest())
	}
	m := Part(c, "message", c.Left()-Tail)
	f = parseFooterMessage(m)
	c.Join(m)
	f.Version = ParseMagic(c)
	ParseLength(c)
	return f, fr
}

// parseFooterMessage reads a CFileFooterPB, which fills the rest of c.
func parseFooterMessage(c *wire.Cursor) (f Footer) {
	f.Compression = NoCompression
	var array bool
	var seen uint // fields 1, 2 and 3 are required
	for r := pb.NewReader(c); r.Next(); {
		if r.Field() <= 3 {
			seen |= 1 << r.Field()
		}
		switch r.Field() {
		case 1:
			f.Type = Type(r.Enum("data_type", func(v int32) string { return Type(v).String() }))
		case 2:
			f.Encoding = Encoding(r.Enum("encoding", func(v int32) string { return Encoding(v).String() }))
		case 3:
			f.NumValues = r.Int("num_values")
		case 4:
			f.PosIdx = parseTreeInfo(r, "posidx_info")
		case 5:
			f.ValIdx = parseTreeInfo(r, "validx_info")
		case 6:
			f.Compression = Compression(r.Enum("compression", func(v int32) string { return Compression(v).String() }))
		case 7:
			f.Meta = append(f.Meta, parsePair(r, "metadata"))
		case 8:
			f.Nullable = r.Bool("is_type_nullable")
		case 9:
			f.Dict = parsePointer(r, "dict_block_ptr")
		case 10:
			f.Incompatible = r.Uint32("incompatible_features")
		case 11:
			f.Compatible = r.Uint32("compatible_features")
		case 12:
			array = r.Bool("is_type_array")
		default:
			r.Unknown()
		}
	}
	checkFooter(c, &f, seen, array)
	return f
}

// checkFooter checks the fields against each other. Unknown feature bits are not checked here, because they decide
// whether the file can be read at all; see Support.
func checkFooter(c *wire.Cursor, f *Footer, seen uint, array bool) {
	for i, name := range []string{"data_type", "encoding", "num_values"} {
		if seen>>(i+1)&1 == 0 {
			c.Fail(0, c.Pos(), name, "required, but missing")
		}
	}
	switch {
	case f.NumValues < 0:
		c.Fail(0, c.Pos(), "num_values", "expected at least 0, found %d", f.NumValues)
	case f.Incompatible&^FeaturesKnown == 0 && array != f.Array():
		c.Fail(0, c.Pos(), "is_type_array", "expected %t by the feature bit for array blocks, found %t", f.Array(),
			array)
	}
	if s, ok := f.Stored(); ok && !f.Type.HasDigits(s.Precision, s.Scale) {
		c.Fail(0, c.Pos(), "metadata["+FieldKey+"]", "%s cannot have precision %d and scale %d", f.Type,
			s.Precision, s.Scale)
	}
}

// parseTreeInfo reads a BTreeInfoPB: root_block (1).
func parseTreeInfo(r *pb.Reader, name string) *BlockPtr {
	s := r.Message(name)
	var p *BlockPtr
	for r := pb.NewReader(s); r.Next(); {
		if r.Field() == 1 {
			p = parsePointer(r, "root_block")
		} else {
			r.Unknown()
		}
	}
	if p == nil {
		s.Fail(0, s.Pos(), "root_block", "required, but missing")
	}
	r.Join(s)
	return p
}

// parsePointer reads a BlockPointerPB: offset (1), size (2).
func parsePointer(r *pb.Reader, name string) *BlockPtr {
	s := r.Message(name)
	p := BlockPtr{-1, -1}
	for r := pb.NewReader(s); r.Next(); {
		switch r.Field() {
		case 1:
			p.Offset = r.Int("offset")
		case 2:
			p.Size = int64(r.Int32("size"))
		default:
			r.Unknown()
		}
	}
	if p.Offset < 0 || p.Size < 0 {
		s.Fail(0, s.Pos(), "", "offset %d, size %d; -1 is missing", p.Offset, p.Size)
	}
	r.Join(s)
	return &p
}

// featureNames are the incompatible features, by bit.
var featureNames = [...]string{"checksums", "array blocks"}

// FeatureList is the text of feature bits, for descriptions and errors.
func FeatureList(features uint32) string {
	var names []string
	for ; features != 0; features &= features - 1 {
		i := bits.TrailingZeros32(features)
		if i < len(featureNames) {
			names = append(names, fmt.Sprintf("bit %d (%s)", i, featureNames[i]))
		} else {
			names = append(names, fmt.Sprintf("bit %d (unknown)", i))
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Support returns an Unsupported error if f has a feature, compression, type or encoding that stoa cannot read. at is
// the footer's span.
func Support(f *Footer, at fault.Span) error {
	if f.Incompatible&^FeaturesKnown != 0 {
		return fault.Unsupportedf(at, "footer.incompatible_features", "%#x: %s; known are %s",
			f.Incompatible, FeatureList(f.Incompatible), FeatureList(FeaturesKnown))
	}
	if _, err := CodecOf(f.Compression); err != nil {
		return fault.Locate(err, at, true, "footer")
	}
	if err := Allowed(f.Type, f.Encoding); err != nil {
		return fault.Locate(err, at, true, "footer")
	}
	return nil
}

// CodecOf is the codec of compressed blocks; nil for NoCompression. The error is Unsupported.
func CodecOf(c Compression) (*codec.Codec, error) {
	if c == NoCompression {
		return nil, nil
	}
	if c == DefaultCompression {
		return nil, fault.Unsupportedf(fault.Span{}, "compression", "\"default\" is not allowed in a file")
	}
	if k, ok := codec.ByName(c.String()); ok {
		return k, nil
	}
	return nil, fault.Unsupportedf(fault.Span{}, "compression", "method %d is not known", int32(c))
}

// CheckIndexes returns the reason why the indexes of f cannot lead to its values, or "" if they can.
func CheckIndexes(f *Footer) string {
	if f.PosIdx == nil && f.ValIdx == nil && f.NumValues > 0 {
		return fmt.Sprintf("%s, but no index of their blocks", fault.Count(f.NumValues, "value"))
	}
	if f.PosIdx != nil && f.NumValues > math.MaxUint32+1 {
		return fmt.Sprintf("%d values are more than a positional index can number", f.NumValues)
	}
	return ""
}
