package write

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/nest"
)

// unionInUnion returns an error if there is a union below another one, see meta.UnionBelow.
func unionInUnion(f arrow.Field) (err error) {
	meta.MapFields(f, func(x arrow.Field) (arrow.Field, bool) {
		if _, is := x.Type.(arrow.UnionType); is && meta.UnionBelow(x.Type) {
			err = fault.New(fault.Unsupported, fault.Span{}, "", "column %q of type %s cannot be written as Parquet: "+
				"a union below a union", f.Name, f.Type)
		}
		return x, false
	})
	return err
}

// groupedData converts a union to the struct to: in each row the selected member is set and the others are null. The
// caller releases it.
func groupedData(d arrow.ArrayData, to *arrow.StructType) (arrow.ArrayData, error) {
	u := array.MakeFromData(d).(array.Union)
	defer u.Release()
	dense, _ := u.(*array.DenseUnion)
	made := make([]arrow.ArrayData, u.NumFields())
	idx := make([]int32, u.Len())
	for k := range made {
		for i := range idx {
			switch {
			case u.ChildID(i) != k:
				idx[i] = -1
			case dense != nil:
				idx[i] = dense.ValueOffset(i)
			default:
				idx[i] = int32(i)
			}
		}
		spaced, err := nest.Take(u.Field(k), idx, memory.DefaultAllocator)
		if err != nil {
			return nil, err
		}
		made[k], err = storedData(spaced.Data(), to.Field(k).Type)
		spaced.Release()
		if err != nil {
			return nil, err
		}
		defer made[k].Release()
	}
	return array.NewData(to, u.Len(), []*memory.Buffer{nil}, made, 0, 0), nil
}
