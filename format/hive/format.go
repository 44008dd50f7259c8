package hive

import (
	"context"
	"errors"
	"iter"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/internal/lake"
	"stoa/format/option"
	"stoa/region"
)

// Probe returns the format of a file, or of a directory that is a table of its own.
type Probe func(ctx context.Context, tg format.Target) (*format.Format, error)

// New returns format "hive", for files of formats, which probe tells apart.
func New(formats []format.Format, probe Probe) format.Format {
	h := &hiveFormat{probe: probe, formats: formats, reading: option.Table[ReadOptions]{Format: "hive", For: "reading",
		Options: []option.Option[ReadOptions]{option.Text("partition-types", "\"y: int32, …\"",
			"types of the partition columns (default: those that stoa wrote beside them, or inferred)",
			func(o *ReadOptions) *string { return &o.PartitionTypes })}}}
	f := format.Format{
		Name:      "hive",
		Title:     "directories with partitions, NAME=VALUE, of files of one format",
		Probe:     h.match,
		List:      lake.List(h.entry),
		Open:      h.open,
		Describe:  h.describe,
		Verify:    h.verify,
		Recover:   h.recover,
		Unchecked: format.UncheckedMembers(h.open),
		Bounds:    true,
		Claims:    claims,
		ReadKeys:  h.reading.Keys(),
		Codes: []region.CodeDoc{{Code: "hive.file.left.out", Severity: region.Warning, Help: "A file among those of " +
			"a table with partitions is in no known format, and was left out. If it belongs to the table, it is " +
			"damaged beyond recognition."}},
	}
	for _, in := range formats {
		for _, k := range in.ReadKeys {
			known := slices.ContainsFunc(f.ReadKeys, func(x format.OptionKey) bool { return x.Name == k.Name })
			if holdsRows(&in) && !known {
				f.ReadKeys = append(f.ReadKeys, k)
			}
		}
	}
	return f
}

// ReadOptions are the options of reading that the files do not have. The zero value of each is the default.
type ReadOptions struct {
	PartitionTypes string // "y: int32, region: string"
}

// hiveFormat is the format with the formats of the files.
type hiveFormat struct {
	probe   Probe
	formats []format.Format
	reading option.Table[ReadOptions]
}

// holdsRows reports whether files of a format can lie in partitions: not those of systems, which have directories of
// their own.
func holdsRows(f *format.Format) bool {
	return f.Open != nil && len(f.Extensions) > 0 && f.Change == nil && f.InUse == nil && f.Levels == 0
}

// match implements Format.Probe: the first file below a directory NAME=VALUE decides.
func (h *hiveFormat) match(ctx context.Context, tg format.Target) (format.Match, error) {
	if info, err := tg.Tree.Stat(ctx, tg.Name); err != nil || !info.Dir || tg.At.Len() > 0 {
		return format.No, err
	}
	w := &walk{hiveFormat: h, tree: tg.Tree, first: true}
	if err := w.dir(ctx, tg.Name, nil, 0); err != nil && !errors.Is(err, errFound) {
		return format.No, nil //nolint:nilerr // what cannot be listed is reported by what is found otherwise
	}
	if w.marked || len(w.files) > 0 && len(w.files[0].values) > 0 {
		return format.Likely, nil
	}
	return format.No, nil
}

// entry returns the table as List describes it.
func (h *hiveFormat) entry(ctx context.Context, tg format.Target, o format.OpenOptions) (e format.Entry, err error) {
	t, err := h.table(ctx, tg, o)
	if err != nil {
		return e, err
	}
	defer t.Close()
	e = format.Entry{Kind: "table", Meta: t.Meta(), Bytes: t.bytes, Rows: t.rows}
	return e, nil
}

// open implements Format.Open.
func (h *hiveFormat) open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	t, err := h.table(ctx, tg, o)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// verify implements Format.Verify: every file is verified by its format, and its columns and partitions must fit.
func (h *hiveFormat) verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		own, rest, err := h.options(o.Opts)
		if err != nil {
			yield(failure(tg.Name, err))
			return
		}
		w, err := h.walk(ctx, tg)
		if err != nil {
			yield(failure(tg.Name, err))
			return
		}
		for _, f := range w.left {
			if !yield(f) {
				return
			}
		}
		for _, f := range w.files {
			if f.format.Verify == nil {
				continue
			}
			each := o
			each.Opts = rest
			each.Limits = each.Limits.Apart()
			for x := range f.format.Verify(ctx, format.Target{Tree: tg.Tree, Name: f.name}, each) {
				if x.Severity >= region.Error {
					err = errFound
				}
				if !yield(x) {
					return
				}
			}
		}
		if err != nil { // the table cannot be opened, or not be read, for the same reasons
			return
		}
		t, err := h.tableOf(ctx, tg, o, own, rest, w)
		if err == nil {
			err = t.hold(ctx)
			err = errors.Join(err, t.Close())
		}
		if err != nil {
			yield(failure(tg.Name, err))
		}
	}
}

// failure is the finding about a table that cannot be opened.
func failure(name string, err error) region.Finding {
	f := region.Finding{Code: "file.unreadable", Severity: region.Error, At: fault.Span{Object: name},
		Message: err.Error(), Rows: [2]int64{-1, -1}, Lost: -1}
	var e *fault.Error
	if errors.As(err, &e) {
		if f.Message, f.Path = e.Reason, e.Path; e.At.Object != "" {
			f.At = e.At
		}
	}
	return f
}

// describe implements Format.Describe: one file after another.
func (h *hiveFormat) describe(ctx context.Context, tg format.Target,
	o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		_, rest, err := h.options(o.Opts)
		var w *walk
		if err == nil {
			w, err = h.walk(ctx, tg)
		}
		if err != nil {
			yield(region.Node{}, err)
			return
		}
		o.Opts = rest
		for _, f := range w.files {
			if f.format.Describe == nil {
				continue
			}
			for n, err := range f.format.Describe(ctx, format.Target{Tree: tg.Tree, Name: f.name}, o) {
				if !yield(n, err) || err != nil {
					return
				}
			}
		}
	}
}

// recover implements Format.Recover: each file is opened by the recovery of its format.
func (h *hiveFormat) recover(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader,
	[]region.Finding, error) {
	own, rest, err := h.options(o.Opts)
	if err != nil {
		return nil, nil, err
	}
	w, err := h.walk(ctx, tg)
	if err != nil {
		return nil, nil, err
	}
	w.salvage = true
	t, err := h.tableOf(ctx, tg, o, own, rest, w)
	if err != nil {
		return nil, w.found, err
	}
	return t, w.found, nil
}

// options divides options into those of the directories and those of the files.
func (h *hiveFormat) options(opts map[string]string) (own ReadOptions, rest map[string]string, err error) {
	mine, rest := map[string]string{}, map[string]string{}
	for k, v := range opts {
		if slices.ContainsFunc(h.reading.Keys(), func(x format.OptionKey) bool { return x.Name == k }) {
			mine[k] = v
		} else {
			rest[k] = v
		}
	}
	own, err = h.reading.Parse(mine)
	return own, rest, err
}

// claims implements Format.Claims: partitions and hidden files belong to the table.
func claims(_ context.Context, tg format.Target, _ format.OpenOptions) format.Claimer {
	dir := path.Clean(tg.Name)
	return func(name string, _ bool) (format.Claim, error) {
		if path.Clean(name) == dir || strings.HasPrefix(path.Clean(name), dir+"/") {
			return format.OfTable, nil
		}
		return format.Foreign, nil
	}
}
