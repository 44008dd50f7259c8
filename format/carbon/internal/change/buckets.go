package change

import (
	"math"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"

	"github.com/apache/arrow-go/v18/arrow"
)

// bucketHash is Spark's hash of the value of a bucket column in row i; the rows of a bucket have the same hash modulo
// the number of buckets.
func bucketHash(l *Load, b arrow.RecordBatch, i int, c *layout.ColumnSchema) (int32, error) {
	a := l.fieldOf(b, c)
	if a == nil || a.IsNull(i) {
		return page.HashSeed, nil
	}
	x := &page.Cells{}
	if err := x.Add(&schema.Column{ColumnSchema: c}, a, i, i+1, &l.wo); err != nil {
		return 0, err
	}
	switch c.Type {
	case layout.TypeLong:
		return page.MurmurLong(uint64(x.Ints[0])), nil
	case layout.TypeTimestamp:
		return page.MurmurLong(uint64(x.Ints[0] * 1000)), nil
	case layout.TypeDouble:
		return page.MurmurLong(math.Float64bits(x.Nums[0])), nil
	case layout.TypeFloat:
		return page.MurmurInt(math.Float32bits(float32(x.Nums[0]))), nil
	case layout.TypeDate:
		return page.MurmurInt(uint32(x.Ints[0])), nil
	case layout.TypeShort, layout.TypeInt, layout.TypeBoolean:
		return page.MurmurInt(uint32(x.Ints[0])), nil
	case layout.TypeString, layout.TypeVarchar:
		return page.MurmurText(x.Text(0)), nil
	}
	return 0, fault.Unsupportedf(fault.Span{Object: l.dir}, c.Name, "buckets by a column of type %s", c.Type)
}
