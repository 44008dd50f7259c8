package rewrite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/format/parquet/internal/verify"
	"stoa/format/parquet/internal/write"
	"stoa/region"
)

// Job is a plan to copy the pages of files.
type Job struct {
	files []*source
	o     write.CopyOptions
	pairs []meta.KeyValue // of the output file
	rows  int64
	made  []madeChunk

	cutPages int64 // number of pages that are cut
}

// source is a file with its footer as stored.
type source struct {
	r      *read.Reader
	footer node
	fields []int // kept fields, ascending
	leaves []int
	parts  []part // the row groups of the output
}

// madeChunk is the location and checksum of the pages of a column chunk in the output.
type madeChunk struct {
	group, leaf int
	at, size    int64
	sum         uint32
}

// Plan works out how to copy the pages of files into one. If that is impossible, why explains it.
func Plan(ctx context.Context, files []*read.Reader, o format.CopyOptions) (j *Job, why string, err error) {
	j = &Job{}
	var other string
	if j.o, other, err = write.ParseCopyOptions(o.Opts); err != nil {
		return nil, "", err
	}
	if other != "" { // even if the pages already have the requested codec: other encodings may be wanted with it
		return nil, "option " + other + " changes pages", nil
	}
	for _, r := range files {
		s := &source{r: r}
		if why := s.plain(); why != "" {
			return nil, why, nil
		}
		if why := s.choose(o.Columns); why != "" {
			return nil, why, nil
		}
		b := make([]byte, r.FooterAt.Len)
		if err := format.ReadFull(ctx, r.Src, r.FooterAt, "footer", b); err != nil {
			return nil, "", err
		}
		var n int
		if s.footer, n, err = decode(b); err != nil || n != len(b) {
			return nil, "its footer cannot be copied", nil
		}
		j.files = append(j.files, s)
		j.rows += r.Footer.NumRows
		if why := j.files[0].differs(s); why != "" {
			return nil, why, nil
		}
		if why, err = j.cut(ctx, s); err != nil { // damage has to be reported
			return nil, cmp.Or(j.findDamage(ctx, o), err.Error()), ctx.Err()
		}
		if why != "" {
			return nil, why, nil
		}
	}
	if err = j.keyValues(); err != nil {
		return nil, "", err
	}
	if why = j.findDamage(ctx, o); why != "" || ctx.Err() != nil {
		return nil, why, ctx.Err()
	}
	return j, "", nil
}

// plain returns the reason why the pages of a file cannot be copied, or "".
func (s *source) plain() string {
	r := s.r
	if r.Footer.Algorithm != nil || r.EncryptedFooter {
		return "it is encrypted"
	}
	if len(r.Lost) > 0 || r.MissingParts != nil {
		return "it is incomplete"
	}
	for k := range r.Footer.Schema.NumColumns() {
		if r.Footer.Schema.Column(k).Typ == meta.TypeInt96 && r.Int96 != arrow.Nanosecond {
			return "its INT96 is read in another unit than pages have"
		}
	}
	for _, g := range r.Footer.RowGroups {
		for _, c := range g.Columns {
			if c.Crypto != nil || c.FilePath != "" {
				return "a column is encrypted, or in another file"
			}
		}
	}
	return ""
}

// choose selects the columns to keep, which must be whole and in file order. It returns the reason if it cannot, or "".
func (s *source) choose(columns []string) string {
	fields := s.r.Shown.Fields()
	if columns == nil {
		for i := range fields {
			s.fields = append(s.fields, i)
		}
	}
	for _, name := range columns {
		i := -1
		for k, f := range fields {
			if f.Name == name {
				if i >= 0 {
					return "two columns have the same name"
				}
				i = k
			}
		}
		if i < 0 {
			return "only a part of a column is selected"
		}
		if n := len(s.fields); n > 0 && i <= s.fields[n-1] {
			return "the columns are reordered"
		}
		s.fields = append(s.fields, i)
	}
	for _, f := range s.fields {
		s.leaves = append(s.leaves, s.r.FieldLeaves[f]...)
	}
	if len(s.leaves) == 0 || !slices.IsSorted(s.leaves) {
		return "no columns are selected"
	}
	return ""
}

// differs returns the reason why two files cannot be concatenated, or "".
func (s *source) differs(o *source) string {
	if s == o {
		return ""
	}
	a, b := s.schema(), o.schema()
	if !bytes.Equal(a.append(nil), b.append(nil)) || !slices.EqualFunc(s.fields, o.fields, func(x, y int) bool {
		return s.r.Shown.Field(x).Equal(o.r.Shown.Field(y))
	}) {
		return "the files have different schemas"
	}
	if s.r.Footer.CreatedBy != o.r.Footer.CreatedBy { // whether readers trust statistics depends on the writer
		return "the files are by different writers"
	}
	if x, y := s.orders(), o.orders(); !bytes.Equal(x.append(nil), y.append(nil)) {
		return "the files have different column orders"
	}
	return ""
}

// schema returns the schema elements of the kept columns.
func (s *source) schema() node {
	all := s.footer.at(2)
	out := node{typ: isList, elem: isStruct}
	root := all.items[0]
	root.fields = slices.Clone(root.fields)
	root.set(5, i32(int64(len(s.fields))))
	out.items = append(out.items, root)
	at := 1
	for f := range s.r.FieldLeaves {
		from := at
		for left := 1; left > 0; left, at = left-1, at+1 {
			if n := all.items[at].at(5); n != nil {
				left += int(n.n)
			}
		}
		if slices.Contains(s.fields, f) {
			out.items = append(out.items, all.items[from:at]...)
		}
	}
	return out
}

// orders returns the column orders of the kept columns.
func (s *source) orders() node {
	all := s.footer.at(7)
	if all == nil || len(all.items) != s.r.Footer.Schema.NumColumns() {
		return node{}
	}
	out := node{typ: isList, elem: isStruct}
	for _, leaf := range s.leaves {
		out.items = append(out.items, all.items[leaf])
	}
	return out
}

// findDamage verifies the pages to be copied, and the claims about them, because damage is not copied. It returns the
// first finding, or "". The findings are only warnings: the rows are then read and written anew, which reports whatever
// cannot be read.
func (j *Job) findDamage(ctx context.Context, o format.CopyOptions) (why string) {
	type task struct {
		s         *source
		group, fd int
	}
	var mu sync.Mutex
	report := func(fs []region.Finding) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range fs {
			if o.Found != nil {
				f.Severity = min(f.Severity, region.Warning)
				o.Found(f)
			}
		}
		if len(fs) > 0 && why == "" {
			why = fmt.Sprintf("%s: %s", fs[0].Code, fs[0].Message)
		}
	}
	tasks := make(chan task)
	var wg sync.WaitGroup
	for range max(1, o.Parallel) {
		wg.Go(func() {
			for t := range tasks {
				if t.fd < 0 {
					report(verify.CheckOrder(ctx, t.s.r, t.group))
				} else {
					report(verify.CheckField(ctx, t.s.r, t.group, t.fd, !o.NoCheck))
				}
			}
		})
	}
	for _, s := range j.files {
		report(verify.CheckFile(s.r))
		for g := range s.r.Footer.RowGroups {
			fields := s.fields
			if len(s.r.Footer.RowGroups[g].SortingColumns) > 0 && !o.NoCheck {
				fields = append(slices.Clone(fields), -1)
			}
			for _, f := range fields {
				mu.Lock()
				stop := why != "" || ctx.Err() != nil
				mu.Unlock()
				if !stop {
					tasks <- task{s, g, f}
				}
			}
		}
	}
	close(tasks)
	wg.Wait()
	return why
}

// counted is a writer that counts the bytes written.
type counted struct {
	w   io.Writer
	off int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.off += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Write writes the file.
func (j *Job) Write(ctx context.Context, w io.Writer) error {
	out := &counted{w: w}
	if _, err := io.WriteString(out, meta.Magic); err != nil {
		return err
	}
	groups := node{typ: isList, elem: isStruct}
	var after trailers
	for _, s := range j.files {
		for i := range s.parts {
			x, more, err := j.group(ctx, out, s, &s.parts[i], len(groups.items))
			if err != nil {
				return err
			}
			groups.items = append(groups.items, x)
			for kind := range after {
				after[kind] = append(after[kind], more[kind]...)
			}
		}
	}
	for _, f := range slices.Concat(after[:]...) { // these functions set fields of the chunks
		if err := f(out); err != nil {
			return err
		}
	}
	return j.footer(out, groups)
}

// copySpan copies bytes of a file and updates a checksum with them.
func copySpan(ctx context.Context, out *counted, r *file.File, at fault.Span, sum uint32) (uint32, error) {
	const step = 1 << 20
	buf := make([]byte, min(step, at.Len))
	for at.Len > 0 {
		n := min(step, at.Len)
		if err := format.ReadFull(ctx, r.Src, at.Sub(0, n), "pages", buf[:n]); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, crc32.IEEETable, buf[:n])
		if _, err := out.Write(buf[:n]); err != nil {
			return 0, err
		}
		at = at.Sub(n, at.Len-n)
	}
	return sum, nil
}

// footer writes the footer, its length and the magic.
func (j *Job) footer(out *counted, groups node) error {
	s := j.files[0]
	f := s.footer
	f.fields = slices.Clone(f.fields)
	for _, o := range j.files {
		if v := o.footer.at(1); v != nil && f.at(1) != nil && v.n > f.at(1).n {
			f.set(1, *v)
		}
	}
	f.set(2, s.schema())
	f.set(3, i64(j.rows))
	f.set(4, groups)
	f.drop(5, 7)
	pairs := node{typ: isList, elem: isStruct}
	for _, p := range j.pairs {
		pairs.items = append(pairs.items, pair(p.Key, p.Value))
	}
	ours := strings.HasPrefix(s.r.Footer.CreatedBy, "stoa version")
	if ours {
		seal := meta.SealPlaceholder
		pairs.items = append(pairs.items, pair(meta.SealKey, &seal))
	}
	if len(pairs.items) > 0 {
		f.set(5, pairs)
	}
	if o := s.orders(); o.typ != 0 {
		f.set(7, o)
	}
	b := f.append(nil)
	if ours {
		meta.Seal(b)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	_, err := out.Write(append(b, meta.Magic...))
	return err
}

func pair(key string, value *string) node {
	x := node{typ: isStruct, fields: []field{{1, text(key)}}}
	if value != nil {
		x.set(2, text(*value))
	}
	return x
}
