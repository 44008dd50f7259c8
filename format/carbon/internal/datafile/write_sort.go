package datafile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/store"
)

// Sorter sorts rows by the sort columns: in memory if they fit, else as sorted runs in temporary files, which are then
// merged. The sort is stable.
type Sorter struct {
	sink   scratcher
	schema *arrow.Schema    // of the sorted rows: those of Schema, and a column of their ordinals
	reads  []*schema.Column // for each field, the column to whose type texts are parsed; nil: not parsed
	cols   []sortKey
	limit  int64 // bytes

	batches []arrow.RecordBatch
	Bytes   int64 // estimated memory of batches and of the order of their rows
	Total   int64 // estimated bytes of all rows that were added
	runs    []*sortedRun
	made    int // number of runs written so far
	chunk   int // rows of a batch of sorted rows
}

// sortKey is a sort column.
type sortKey struct {
	field int            // in the rows
	as    *schema.Column // column to whose type values are converted for comparison; nil: not converted
}

// scratcher creates temporary files.
type scratcher interface {
	Scratch(ctx context.Context) (store.Scratch, error)
}

// NewSorter returns a sorter of rows of schema sc by the columns in names; names that sc lacks are ignored. roots are
// the columns of the table into which the rows go. At most limit bytes are kept in memory. A type that cannot be a sort
// column is Unsupported.
func NewSorter(s scratcher, sc *arrow.Schema, names []string, roots []*schema.Column, limit int64) (*Sorter, error) {
	x := &Sorter{sink: s, limit: limit, reads: make([]*schema.Column, sc.NumFields())}
	fields := sc.Fields()
	for i, f := range fields {
		fields[i] = page.PlainField(f)
		for _, r := range roots {
			if strings.EqualFold(r.Name, f.Name) && isText[f.Type.ID()] && page.NeedsConversion(r, f.Type) &&
				!schema.HasGlobalCodes(r) {
				t, err := r.Arrow()
				if err != nil {
					return nil, err
				}
				x.reads[i], fields[i].Type = r, t
			}
		}
	}
	sc = arrow.NewSchema(fields, nil)
	x.schema = arrow.NewSchema(append(fields[:len(fields):len(fields)], ordinalField), nil)
	for _, n := range names {
		at := slices.IndexFunc(sc.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, n) })
		if at < 0 {
			continue
		}
		if _, ok := sortedAs[sc.Field(at).Type.ID()]; !ok {
			return nil, fault.Unsupportedf(fault.Span{}, n, "a sort column of type %s", sc.Field(at).Type)
		}
		k := sortKey{field: at}
		for _, r := range roots {
			if strings.EqualFold(r.Name, n) && page.NeedsConversion(r, sc.Field(at).Type) &&
				r.Type != layout.TypeString &&
				!schema.HasGlobalCodes(r) {
				k.as = r
			}
		}
		x.cols = append(x.cols, k)
	}
	return x, nil
}

// ordinalField is the last column of sorted rows: their ordinals in the order in which they came, for messages.
var ordinalField = arrow.Field{Type: arrow.PrimitiveTypes.Int64}

// Schema is the schema of the sorted rows, which have one column more, LocatedSorted's: without dictionaries, and with
// texts of numbers and times parsed.
func (s *Sorter) Schema() *arrow.Schema {
	return arrow.NewSchema(s.schema.Fields()[:s.schema.NumFields()-1], nil)
}

// Ordinal is the ordinal that Add gave to row i of a batch of sorted rows.
func Ordinal(b arrow.RecordBatch, i int) int64 {
	return b.Column(int(b.NumCols()) - 1).(*array.Int64).Value(i)
}

// LocatedSorted is Located for an error in a batch of sorted rows: its row is the ordinal that Add gave to it.
func LocatedSorted(err error, b arrow.RecordBatch) error {
	var v *page.ValueError
	if errors.As(err, &v) && v.Row < int(b.NumRows()) {
		return Located(err, Ordinal(b, v.Row)-int64(v.Row))
	}
	return err
}

// sortedAs are the types that appendSortKey supports.
var sortedAs = map[arrow.Type]bool{arrow.BOOL: true, arrow.INT8: true, arrow.UINT8: true, arrow.INT16: true,
	arrow.UINT16: true, arrow.INT32: true, arrow.UINT32: true,
	arrow.INT64: true, arrow.FLOAT32: true, arrow.FLOAT64: true, arrow.DATE32: true, arrow.DATE64: true,
	arrow.TIMESTAMP: true, arrow.STRING: true,
	arrow.LARGE_STRING: true, arrow.STRING_VIEW: true, arrow.DICTIONARY: true}

// isText has the text types. Texts are parsed before they are sorted: values take less memory, and a text that cannot
// be parsed is reported with its row.
var isText = map[arrow.Type]bool{arrow.STRING: true, arrow.LARGE_STRING: true, arrow.STRING_VIEW: true}

// Add adds the rows of a batch, which it retains. ordinal gives the ordinal of each, which messages name.
func (s *Sorter) Add(ctx context.Context, b arrow.RecordBatch, ordinal func(i int) int64) error {
	if b.NumRows() == 0 {
		return nil
	}
	b, err := s.read(b, ordinal)
	if err != nil {
		return err
	}
	s.batches = append(s.batches, b)
	for _, c := range b.Columns() {
		s.Bytes += arrayBytes(c)
		s.Total += arrayBytes(c)
	}
	s.Bytes += 40 * b.NumRows() // needed to sort the rows
	if s.Bytes < s.limit {
		return nil
	}
	return s.Spill(ctx)
}

// read returns the batch with texts parsed as s.reads states, and with the ordinals of its rows.
func (s *Sorter) read(b arrow.RecordBatch, ordinal func(i int) int64) (arrow.RecordBatch, error) {
	cols := slices.Clone(b.Columns()[:len(s.reads)])
	for i, c := range s.reads {
		if c == nil {
			continue
		}
		x := &page.Cells{}
		if err := x.AddConverted(c, b.Column(i), 0, int(b.NumRows())); err != nil {
			return nil, InColumn(err, c)
		}
		a, err := x.Array(s.schema.Field(i).Type)
		if err != nil {
			return nil, err
		}
		defer a.Release()
		cols[i] = a
	}
	ordinals := make([]int64, b.NumRows())
	for i := range ordinals {
		ordinals[i] = ordinal(i)
	}
	last := array.NewInt64Data(array.NewData(arrow.PrimitiveTypes.Int64, len(ordinals),
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(ordinals))}, nil, 0, 0))
	defer last.Release()
	cols = append(cols, last)
	fields := append(b.Schema().Fields()[:len(s.reads)], ordinalField)
	for i := range fields {
		fields[i].Type = cols[i].DataType()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows()), nil
}

// arrayBytes estimates the bytes of the entries of an array; of a slice only those in the slice.
func arrayBytes(a arrow.Array) (n int64) {
	switch a := a.(type) {
	case *array.String:
		return int64(len(a.ValueBytes()) + 4*a.Len())
	case *array.Binary:
		return int64(len(a.ValueBytes()) + 4*a.Len())
	case *array.Struct:
		for k := range a.NumField() {
			n += arrayBytes(a.Field(k))
		}
		return n
	case array.ListLike:
		if a.Len() == 0 || a.ListValues().Len() == 0 {
			return int64(4 * a.Len())
		}
		from, _ := a.ValueOffsets(0)
		_, to := a.ValueOffsets(a.Len() - 1)
		return int64(4*a.Len()) + arrayBytes(a.ListValues())*(to-from)/int64(a.ListValues().Len())
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return int64(a.Len()) * int64(t.BitWidth()) / 8
	}
	for _, b := range a.Data().Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	return n
}

// SortedRow is a row of one of several batches.
type SortedRow struct {
	head       uint64 // first eight bytes of the key as a big-endian number
	batch, Row int32
}

// order sorts the rows in memory: by the heads of their keys, then rows with equal heads by their whole keys.
func (s *Sorter) order() ([]SortedRow, error) {
	n := 0
	first := make([]int, len(s.batches)) // ordinal of the first row of each batch among all
	for k, b := range s.batches {
		first[k] = n
		n += int(b.NumRows())
	}
	rows := make([]SortedRow, 0, n)
	ends := make([]uint32, 1, n+1)
	var keys []byte
	for k, b := range s.batches {
		for i := range int(b.NumRows()) {
			from := len(keys)
			var err error
			if keys, err = appendSortKey(keys, b, s.cols, i); err != nil {
				return nil, err
			}
			if len(keys) >= 1<<32 {
				return nil, fault.Limitf(fault.Span{}, "",
					"the sort columns of the rows in memory have more than 4 GiB: lower writing option memory")
			}
			var head [8]byte
			copy(head[:], keys[from:])
			rows = append(rows, SortedRow{binary.BigEndian.Uint64(head[:]), int32(k), int32(i)})
			ends = append(ends, uint32(len(keys)))
		}
	}
	rows = byHead(rows)
	key := func(r SortedRow) []byte {
		k := first[r.batch] + int(r.Row)
		return keys[ends[k]:ends[k+1]]
	}
	for from := 0; from < n; {
		to, long := from, false
		for ; to < n && rows[to].head == rows[from].head; to++ {
			long = long || len(key(rows[to])) > 8
		}
		if long && to-from > 1 {
			slices.SortStableFunc(rows[from:to], func(a, b SortedRow) int { return bytes.Compare(key(a), key(b)) })
		}
		from = to
	}
	return rows, nil
}

// byHead sorts rows by their heads: a stable radix sort, byte by byte from the least significant one.
func byHead(rows []SortedRow) []SortedRow {
	var counts [8][256]int
	for _, r := range rows {
		for b := range counts {
			counts[b][byte(r.head>>(8*b))]++
		}
	}
	var other []SortedRow
	for b := range counts {
		at, sum := &counts[b], 0
		if len(rows) == 0 || at[byte(rows[0].head>>(8*b))] == len(rows) { // all have the same byte
			continue
		}
		for v, n := range at {
			at[v] = sum
			sum += n
		}
		if other == nil {
			other = make([]SortedRow, len(rows))
		}
		for _, r := range rows {
			v := byte(r.head >> (8 * b))
			other[at[v]] = r
			at[v]++
		}
		rows, other = other, rows
	}
	return rows
}

// appendSortKey appends the key of row i of b. Under bytes.Compare keys have CarbonData's sort order: nulls first,
// except that a null string sorts as NullText.
func appendSortKey(key []byte, b arrow.RecordBatch, cols []sortKey, row int) ([]byte, error) {
	be := binary.BigEndian
	for _, c := range cols {
		a, i := outOfDictionary(b.Column(c.field), row)
		if c.as != nil && a.IsValid(i) {
			v, err := page.Convert(c.as, a, i)
			if err != nil {
				return nil, LocatedSorted(&page.ValueError{Row: row, Column: c.as.Name, Err: err}, b)
			}
			switch key = append(key, 1); c.as.Type {
			case layout.TypeLong, layout.TypeTimestamp:
				key = be.AppendUint64(key, uint64(v.I)^1<<63)
			case layout.TypeFloat, layout.TypeDouble:
				key = appendFloatKey(key, v.F)
			default:
				key = be.AppendUint32(key, uint32(v.I)^1<<31)
			}
			continue
		}
		text, isText := a.(page.StringArray)
		if isText && c.as == nil {
			v := schema.NullText
			if a.IsValid(i) {
				v = text.Value(i)
			}
			key = appendEscaped(key, v)
			continue
		}
		if a.IsNull(i) {
			key = append(key, 0)
			continue
		}
		var ok bool
		if key, ok = appendNumberKey(append(key, 1), a, i); !ok {
			return nil, fault.Unsupportedf(fault.Span{}, b.ColumnName(c.field), "a sort column of type %s",
				a.DataType())
		}
	}
	return key, nil
}

// outOfDictionary returns the array and index that hold the value of entry i of a: those of the dictionary, if a has
// one and the entry is not null.
func outOfDictionary(a arrow.Array, i int) (arrow.Array, int) {
	for {
		d, ok := a.(*array.Dictionary)
		if !ok || a.IsNull(i) {
			return a, i
		}
		a, i = d.Dictionary(), d.GetValueIndex(i)
	}
}

// appendNumberKey appends a number in big-endian order, with the sign bit inverted so that negative ones come first; ok
// is false for a type that is not a number.
func appendNumberKey(key []byte, a arrow.Array, i int) ([]byte, bool) {
	be := binary.BigEndian
	switch a := a.(type) {
	case *array.Boolean:
		v := byte(0)
		if a.Value(i) {
			v = 1
		}
		return append(key, v), true
	case *array.Int8:
		return be.AppendUint32(key, uint32(a.Value(i))^1<<31), true
	case *array.Uint8:
		return be.AppendUint32(key, uint32(a.Value(i))), true
	case *array.Int16:
		return be.AppendUint32(key, uint32(a.Value(i))^1<<31), true
	case *array.Uint16:
		return be.AppendUint32(key, uint32(a.Value(i))), true
	case *array.Int32:
		return be.AppendUint32(key, uint32(a.Value(i))^1<<31), true
	case *array.Uint32:
		return be.AppendUint32(key, uint32(a.Value(i))), true
	case *array.Int64:
		return be.AppendUint64(key, uint64(a.Value(i))^1<<63), true
	case *array.Date32:
		return be.AppendUint32(key, uint32(a.Value(i))^1<<31), true
	case *array.Date64:
		return be.AppendUint64(key, uint64(a.Value(i))^1<<63), true
	case *array.Timestamp:
		return be.AppendUint64(key, uint64(a.Value(i))^1<<63), true
	case *array.Float32:
		return appendFloatKey(key, float64(a.Value(i))), true
	case *array.Float64:
		return appendFloatKey(key, a.Value(i)), true
	}
	return key, false
}

// appendFloatKey appends a number so that −Inf < −1 < −0 < 0 < 1 < +Inf, and NaN lies beyond an infinity.
func appendFloatKey(key []byte, f float64) []byte {
	bits := math.Float64bits(f)
	if bits>>63 != 0 {
		return binary.BigEndian.AppendUint64(key, ^bits)
	}
	return binary.BigEndian.AppendUint64(key, bits^1<<63)
}

// appendEscaped appends a text with a terminator, so that no text is a prefix of another: bytes 0 are escaped.
func appendEscaped(key []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 {
			return append(append(key, s...), 0, 0)
		}
		key = append(append(key, s[:i]...), 0, 0xff)
		s = s[i+1:]
	}
}

func (s *Sorter) drop() {
	for _, b := range s.batches {
		b.Release()
	}
	s.batches, s.Bytes = nil, 0
}

// step returns the number of rows per batch of sorted rows; fewer if rows are wide.
func (s *Sorter) step(rows int) int {
	return int(max(1, min(8<<10, 16<<20/max(1, s.Bytes/int64(max(rows, 1))))))
}

// maxRuns is the number of temporary files of a level that are merged into one of the next.
const maxRuns = 64

// Spill sorts the rows in memory and writes them to a temporary file. Files are merged level by level, to limit the
// number of open files.
func (s *Sorter) Spill(ctx context.Context) error {
	rows, err := s.order()
	if err != nil {
		return err
	}
	s.chunk = s.step(len(rows))
	r, err := s.newRun(ctx, 0, func(yield func(b arrow.RecordBatch) error) error {
		for part := range slices.Chunk(rows, s.chunk) {
			if err := errors.Join(ctx.Err(), s.gather(s.batches, part, yield)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.drop()
	s.runs = append(s.runs, r)
	for level := 0; ; level++ {
		from := slices.IndexFunc(s.runs, func(r *sortedRun) bool { return r.level == level })
		if from < 0 || len(s.runs)-from < maxRuns {
			return nil
		}
		mine := s.runs[from:]
		r, err := s.newRun(ctx, level+1,
			func(yield func(b arrow.RecordBatch) error) error { return s.merge(ctx, mine, yield) })
		if err != nil {
			return err
		}
		for _, m := range mine {
			m.close()
		}
		s.runs = append(s.runs[:from:from], r)
	}
}

func (s *Sorter) gather(batches []arrow.RecordBatch, rows []SortedRow, yield func(b arrow.RecordBatch) error) error {
	return GatherRows(s.schema, batches, rows, yield)
}

// GatherRows calls yield with the given rows of batches as one batch, or as several if a column has more bytes than fit
// in a batch. sc is the schema of the batches without dictionaries.
func GatherRows(sc *arrow.Schema, batches []arrow.RecordBatch, rows []SortedRow,
	yield func(b arrow.RecordBatch) error) error {
	spans := make([]page.Span, 0, len(rows))
	for _, r := range rows {
		if k := len(spans) - 1; k >= 0 && spans[k].Array == r.batch && spans[k].To == r.Row {
			spans[k].To++
		} else {
			spans = append(spans, page.Span{Array: r.batch, From: r.Row, To: r.Row + 1})
		}
	}
	cols := make([]arrow.Array, sc.NumFields())
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	parts := make([]arrow.Array, len(batches))
	for k := range cols {
		for i, b := range batches {
			parts[i] = b.Column(k)
		}
		var err error
		cols[k], err = page.GatherArrays(parts, spans)
		if fault.OverBudget(err) && len(rows) > 1 {
			return errors.Join(GatherRows(sc, batches, rows[:len(rows)/2], yield),
				GatherRows(sc, batches, rows[len(rows)/2:], yield))
		}
		if err != nil {
			return err
		}
	}
	b := array.NewRecordBatch(sc, cols, int64(len(rows)))
	defer b.Release()
	return yield(b)
}

// Close releases the memory and removes the temporary files.
func (s *Sorter) Close() {
	s.drop()
	for _, r := range s.runs {
		r.close()
	}
	s.runs = nil
}
