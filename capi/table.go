package main

// #include "stoa.h"
import "C"

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"runtime"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// table is an open table, or an open split of one.
type table struct {
	t *stoa.Table
	s *stoa.SplitTable

	mu    sync.Mutex
	scans map[*scan]bool // begun and not ended
}

func (t *table) cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.scans {
		s.cancel()
	}
}

func (t *table) close() {
	if t.s != nil {
		t.s.Close()
		return
	}
	t.t.Close()
}

func (t *table) findings() []region.Finding {
	if t.s != nil {
		return t.s.Findings()
	}
	return t.t.Findings()
}

// whole returns the table, for what a split does not support.
func (t *table) whole() (*stoa.Table, error) {
	if t.t == nil {
		return nil, fault.Invalidf("expected a table, found a split, which can only be scanned")
	}
	return t.t, nil
}

type limits struct {
	Page     int64 `json:"page"`
	Metadata int64 `json:"metadata"`
	Opening  int64 `json:"opening"`
	Fields   int64 `json:"fields"`
	Depth    int64 `json:"depth"`
}

type openRequest struct {
	Paths    []string          `json:"paths"`
	Format   string            `json:"format"`
	Options  map[string]string `json:"options"`
	Recover  bool              `json:"recover"`
	NoVerify bool              `json:"no_verify"`
	Mmap     bool              `json:"mmap"`
	Limits   limits            `json:"limits"`
	// Environment are environment variables to set for the library, whose copy of the process's environment dates from
	// when it was loaded.
	Environment map[string]string `json:"environment"`
	Cancel      uint64            `json:"cancel"` // a token
}

// surround sets environment variables, for the clients of stores.
func surround(vars map[string]string) {
	for k, v := range vars {
		if os.Getenv(k) != v {
			os.Setenv(k, v)
		}
	}
}

// options returns the library's options for a request.
func (r *openRequest) options() stoa.OpenOptions {
	return stoa.OpenOptions{Formats: verbs.Formats(), From: r.Format, Opts: r.Options, Recover: r.Recover,
		NoVerify: r.NoVerify, Mmap: r.Mmap, Limits: format.Limits{Page: r.Limits.Page, Metadata: r.Limits.Metadata,
			Opening: r.Limits.Opening, Fields: r.Limits.Fields, Depth: r.Limits.Depth}}
}

//export goOpen
func goOpen(request *C.char, out *C.stoa_t, fail **C.char) C.int {
	h, err := openTable(request)
	if err == nil {
		*out = C.stoa_t(h)
	}
	return answer(err, fail)
}

func openTable(request *C.char) (h uint64, err error) {
	defer guard(&err)
	var r openRequest
	if err := ask(request, &r); err != nil {
		return 0, err
	}
	surround(r.Environment)
	if len(r.Paths) == 0 {
		return 0, fault.Invalidf("request: expected paths, found none")
	}
	ctx, done, err := during(r.Cancel)
	if err != nil {
		return 0, err
	}
	defer done()
	t, err := stoa.OpenAll(ctx, r.Paths, r.options())
	if err != nil {
		return 0, err
	}
	return newHandle(&table{t: t, scans: map[*scan]bool{}}), nil
}

//export goOpenSplit
func goOpenSplit(split *C.char, out *C.stoa_t, fail **C.char) C.int {
	h, err := openSplit(C.GoString(split))
	if err == nil {
		*out = C.stoa_t(h)
	}
	return answer(err, fail)
}

func openSplit(text string) (h uint64, err error) {
	defer guard(&err)
	var s stoa.Split
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return 0, fault.Invalidf("split: %v", err)
	}
	t, err := stoa.OpenSplit(context.Background(), s, stoa.OpenOptions{Formats: verbs.Formats()})
	if err != nil {
		return 0, err
	}
	return newHandle(&table{s: t, scans: map[*scan]bool{}}), nil
}

// scanRequest is the spec of stoa.h.
type scanRequest struct {
	Columns   []string  `json:"columns"`
	Where     string    `json:"where"`
	Rows      *[2]int64 `json:"rows"`
	Limit     int64     `json:"limit"`
	Batch     int       `json:"batch"`
	Damaged   string    `json:"damaged"`
	Unordered bool      `json:"unordered"`
	Dict      string    `json:"dictionaries"`
	Parallel  int       `json:"parallel"`
	Memory    int64     `json:"memory"`
	Key       []string  `json:"key"`
	Row       *int64    `json:"row"`
	Cancel    uint64    `json:"cancel"` // a token; of stoa_count and stoa_plan
}

// spec returns the library's spec for a request.
func (r *scanRequest) spec() (s stoa.ScanSpec, err error) {
	s = stoa.ScanSpec{Columns: r.Columns, Limit: r.Limit, Batch: r.Batch, Unordered: r.Unordered, Memory: r.Memory,
		Parallel: r.Parallel, Alloc: pool}
	if s.Parallel == 0 {
		s.Parallel = runtime.GOMAXPROCS(0)
	}
	if r.Rows != nil {
		if r.Rows[0] < 0 || r.Rows[1] < r.Rows[0] {
			return s, fault.Invalidf("rows: expected 0 <= from <= to, found %d, %d", r.Rows[0], r.Rows[1])
		}
		s.Rows = vec.Range{From: r.Rows[0], To: r.Rows[1]}
	}
	switch r.Damaged {
	case "", "fail":
	case "skip-rows":
		s.Damaged = stoa.SkipRows
	case "null-cells":
		s.Damaged = stoa.NullCells
	default:
		return s, fault.Invalidf("damaged: expected fail, skip-rows or null-cells, found %q", r.Damaged)
	}
	switch r.Dict {
	case "", "values":
	case "codes":
		s.Dictionaries = stoa.DictionaryCodes
	default:
		return s, fault.Invalidf("dictionaries: expected values or codes, found %q", r.Dict)
	}
	if r.Where != "" {
		if s.Filter, err = pred.Parse(r.Where); err != nil {
			return s, err
		}
	}
	return s, nil
}

// few is the number of rows that one worker reads before a second one could have started.
const few = 1 << 17

// alone reports whether one worker suffices for a scan that sets no number of workers.
func (t *table) alone(r *scanRequest) bool {
	if r.Parallel != 0 {
		return false
	}
	if r.Limit > 0 && r.Limit <= few || r.Rows != nil && r.Rows[1]-r.Rows[0] <= few || r.Key != nil || r.Row != nil {
		return true
	}
	if t.t == nil {
		return false
	}
	rows, err := t.t.Rows(context.Background())
	return err == nil && rows >= 0 && rows <= few
}

// empty reports whether the request is for no rows, which the library's zero range would not express.
func (r *scanRequest) empty() bool { return r.Rows != nil && r.Rows[0] == r.Rows[1] }

// batches returns the scan of a request, and its schema.
func (t *table) batches(r *scanRequest, spec stoa.ScanSpec) (sc *arrow.Schema,
	run func(context.Context, stoa.ScanSpec) iter.Seq2[arrow.RecordBatch, error], err error) {
	if t.s != nil {
		sc, err = t.s.Schema()
		return sc, t.s.Scan, err
	}
	if sc, err = t.t.ScanSchema(spec); err != nil {
		return nil, nil, err
	}
	switch {
	case r.Key != nil && r.Row != nil:
		return nil, nil, fault.Invalidf("key and row do not go together")
	case r.Key != nil:
		key, err := t.t.ParseKey(r.Key)
		return sc, func(ctx context.Context, s stoa.ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
			return t.t.Seek(ctx, key, s)
		}, err
	case r.Row != nil:
		n := *r.Row
		return sc, func(ctx context.Context, s stoa.ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
			return t.t.Row(ctx, n, s)
		}, nil
	case r.empty():
		return sc, func(context.Context, stoa.ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
			return func(func(arrow.RecordBatch, error) bool) {}
		}, nil
	}
	return sc, t.t.Scan, nil
}

//export goSchema
func goSchema(h C.stoa_t, spec *C.char, out *C.struct_ArrowSchema, fail **C.char) C.int {
	sc, err := schemaOf(uint64(h), spec)
	if err == nil {
		err = exportSchema(sc, out)
	}
	return answer(err, fail)
}

func schemaOf(h uint64, text *C.char) (sc *arrow.Schema, err error) {
	defer guard(&err)
	t, done, err := held[*table](h)
	if err != nil {
		return nil, err
	}
	defer done()
	var r scanRequest
	if err := ask(text, &r); err != nil {
		return nil, err
	}
	if text == nil && t.t != nil {
		return t.t.Schema(), nil
	}
	spec, err := r.spec()
	if err != nil {
		return nil, err
	}
	sc, _, err = t.batches(&r, spec)
	return sc, err
}

//export goCount
func goCount(h C.stoa_t, spec *C.char, out *C.int64_t, fail **C.char) C.int {
	n, err := countRows(uint64(h), spec)
	if err == nil {
		*out = C.int64_t(n)
	}
	return answer(err, fail)
}

func countRows(h uint64, text *C.char) (n int64, err error) {
	defer guard(&err)
	t, done, err := held[*table](h)
	if err != nil {
		return 0, err
	}
	defer done()
	var r scanRequest
	if err := ask(text, &r); err != nil {
		return 0, err
	}
	spec, err := r.spec()
	if err != nil || r.empty() {
		return 0, err
	}
	whole, err := t.whole()
	if err != nil {
		return 0, err
	}
	if t.alone(&r) {
		spec.Parallel = 1
	}
	parent, over, err := during(r.Cancel)
	if err != nil {
		return 0, err
	}
	defer over()
	s := &scan{table: t}
	ctx := s.begin(parent)
	defer s.end()
	return whole.Count(ctx, spec)
}

//export goPlan
func goPlan(h C.stoa_t, spec *C.char, target C.int64_t, out, fail **C.char) C.int {
	plan, err := planOf(uint64(h), spec, int64(target))
	return give(out, plan, err, fail)
}

type planDoc struct {
	Plan   string       `json:"plan"`
	Splits []stoa.Split `json:"splits"`
}

func planOf(h uint64, text *C.char, target int64) (p planDoc, err error) {
	defer guard(&err)
	t, done, err := held[*table](h)
	if err != nil {
		return p, err
	}
	defer done()
	var r scanRequest
	if err := ask(text, &r); err != nil {
		return p, err
	}
	spec, err := r.spec()
	if err != nil {
		return p, err
	}
	whole, err := t.whole()
	if err != nil {
		return p, err
	}
	if target <= 0 {
		target = 256 << 20
	}
	ctx, over, err := during(r.Cancel)
	if err != nil {
		return p, err
	}
	defer over()
	p = planDoc{Plan: whole.PlanName(spec)}
	p.Splits, err = splitsOf(ctx, whole, spec, target)
	return p, err
}

// maxSplits is the maximum number of splits in a plan, all of which are in memory; only a table of more files or row
// groups than that, of which no target makes fewer, has more.
const maxSplits = 100_000

// splitsOf returns the splits of about target bytes, or of the next larger target that gives no more than maxSplits.
func splitsOf(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec, target int64) ([]stoa.Split, error) {
	const anySize = 1 << 60
	splits := []stoa.Split{}
	for s, err := range t.Plan(ctx, spec, target) {
		if err != nil {
			return nil, err
		}
		if len(splits) == maxSplits && target < anySize {
			return splitsOf(ctx, t, spec, min(4*target, anySize))
		}
		splits = append(splits, s)
	}
	return splits, nil
}

type infoDoc struct {
	Sources    []sourceDoc        `json:"sources"`
	Rows       *int64             `json:"rows"`
	Keys       []string           `json:"keys"`
	Keyed      bool               `json:"keyed"`
	PrimaryKey []string           `json:"primary_key"`
	Findings   []verbs.FindingDoc `json:"findings"`
}

type sourceDoc struct {
	Name   string            `json:"name"`
	Format string            `json:"format"`
	Meta   []format.KeyValue `json:"meta"`
}

//export goInfo
func goInfo(h C.stoa_t, out, fail **C.char) C.int {
	d, err := infoOf(uint64(h))
	return give(out, d, err, fail)
}

func infoOf(h uint64) (d infoDoc, err error) {
	defer guard(&err)
	t, done, err := held[*table](h)
	if err != nil {
		return d, err
	}
	defer done()
	d = infoDoc{Sources: []sourceDoc{}, Findings: docsOfFindings(t.findings())}
	if t.t == nil {
		return d, nil
	}
	rows, err := t.t.Rows(context.Background())
	if err != nil {
		return d, err
	}
	d.Rows, d.Keys, d.Keyed, d.PrimaryKey = known(rows), t.t.Keys(), t.t.Keyed(), t.t.PrimaryKey()
	for _, s := range t.t.Sources() {
		d.Sources = append(d.Sources, sourceDoc{s.Name, s.Format, s.Meta})
	}
	return d, nil
}

func docsOfFindings(all []region.Finding) []verbs.FindingDoc {
	out := []verbs.FindingDoc{}
	for _, f := range all {
		out = append(out, verbs.DocOfFinding(f))
	}
	return out
}
