package delta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/delta/internal/log"
	"stoa/format/parquet"
	"stoa/internal/budget"
	"stoa/internal/scan"
	"stoa/store"
)

// logFiles lists the files of a log: versions and checkpoints.
type logFiles struct {
	tree        store.Tree
	dir         string // of the table
	versions    map[int64]string
	last        int64              // the largest number of any file
	checkpoints map[int64][]string // the files of each; of one in several parts, those that exist
}

// listLog lists a log; nil if there is none.
func listLog(ctx context.Context, tg format.Target) (*logFiles, error) {
	h := &logFiles{tree: tg.Tree, dir: tg.Name, versions: map[int64]string{}, checkpoints: map[int64][]string{}}
	for info, err := range tg.Tree.List(ctx, path.Join(tg.Name, log.Dir)) {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || store.NoFile(err) {
				return nil, nil
			}
			return nil, err
		}
		base := path.Base(info.Name)
		number, rest, _ := strings.Cut(base, ".")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || len(number) != 20 || n < 0 {
			continue
		}
		h.last = max(h.last, n)
		switch {
		case rest == "json":
			h.versions[n] = info.Name
		case strings.HasPrefix(rest, "checkpoint.") && (strings.HasSuffix(rest, ".parquet") ||
			strings.HasSuffix(rest, ".json")):
			h.checkpoints[n] = append(h.checkpoints[n], info.Name)
		}
	}
	if len(h.versions)+len(h.checkpoints) == 0 {
		return nil, nil
	}
	return h, nil
}

// probe implements Format.Probe.
func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	if info, err := tg.Tree.Stat(ctx, tg.Name); err != nil || !info.Dir || tg.At.Len() > 0 {
		return format.No, err
	}
	h, err := listLog(ctx, tg)
	if err != nil || h == nil && !lost(ctx, tg) {
		return format.No, err
	}
	return format.Certain, nil
}

// lost reports whether the directory of the log exists although the target has no version in it: the log is lost.
func lost(ctx context.Context, tg format.Target) bool {
	info, err := tg.Tree.Stat(ctx, path.Join(tg.Name, log.Dir))
	return err == nil && info.Dir
}

// wholeCheckpoint returns the files of a complete checkpoint; nil if parts are missing.
func wholeCheckpoint(names []string) []string {
	parts := map[string][]string{} // by their number
	for _, n := range names {
		words := strings.Split(path.Base(n), ".")
		if len(words) == 5 && words[4] == "parquet" { // N.checkpoint.part.of.parquet
			parts[words[3]] = append(parts[words[3]], n)
			continue
		}
		return []string{n}
	}
	for of, list := range parts {
		if n, err := strconv.Atoi(of); err == nil && n == len(list) {
			return list
		}
	}
	return nil
}

// state is the table at a version.
type state struct {
	version   int64
	time      int64  // of the commit, in milliseconds; 0 if unknown
	operation string // of the commit; "" if unknown
	engine    string // that made the commit; "" if unknown
	changed   bool   // a file was added or removed, and with it rows
	protocol  *log.Protocol
	metadata  *log.MetaData
	files     map[string]*log.Add // nil if removed
	order     []string            // keys of files, each once
	memory    *budget.Memory
	limits    format.Limits
	sidecars  []string
	commits   []commit // that were read: those since the checkpoint
	begins    checkpoint
	named     func(path string) // is called for each file that an action names; nil: nobody asks
}

// commit is what a version says of itself.
type commit struct {
	version int64
	about   string // its time and its operation
}

// about describes the version that was read last.
func (s *state) about() string {
	var words []string
	if s.time > 0 {
		words = append(words, time.UnixMilli(s.time).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if s.operation != "" {
		words = append(words, s.operation)
	}
	return strings.Join(words, ", ")
}

// first returns the oldest version that can be read.
func (h *logFiles) first() int64 {
	if h.versions[0] != "" {
		return 0
	}
	out := h.newest()
	for v, names := range h.checkpoints {
		if wholeCheckpoint(names) != nil {
			out = min(out, v)
		}
	}
	return out
}

// newest returns the number of the last version.
func (h *logFiles) newest() (n int64) {
	n = -1
	for v := range h.versions {
		n = max(n, v)
	}
	for v := range h.checkpoints {
		n = max(n, v)
	}
	return n
}

// pick returns the number of the version that option at names.
func (h *logFiles) pick(ctx context.Context, at string, l format.Limits) (int64, error) {
	if at == "" {
		return h.newest(), nil
	}
	if n, err := strconv.ParseInt(at, 10, 64); err == nil {
		if n < 0 || n > h.newest() {
			return 0, fault.Invalidf("delta: option at=%s: expected a version from 0 to %d", at, h.newest())
		}
		return n, nil
	}
	ms := int64(-1)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, at); err == nil {
			ms = t.UnixMilli()
			break
		}
	}
	if ms < 0 {
		return 0,
			fault.Invalidf("delta: option at=%s: expected a version, a time such as 2006-01-02T15:04:05Z, or a day "+
				"such as 2006-01-02", at)
	}
	found := int64(-1)
	for v := range h.versions {
		t, err := h.committed(ctx, v, l)
		if err != nil {
			return 0, err
		}
		if t == 0 {
			return 0, fault.Unsupportedf(fault.Span{Object: h.versions[v]}, "commitInfo", "version %d does not say "+
				"when it was committed: name the version by its number", v)
		}
		if t <= ms {
			found = max(found, v)
		}
	}
	if found < 0 {
		return 0, fault.Invalidf("delta: option at=%s: the log has no version as old as that", at)
	}
	return found, nil
}

// committed returns the time at which a version was committed, in milliseconds.
func (h *logFiles) committed(ctx context.Context, version int64, l format.Limits) (int64, error) {
	s, err := h.alone(ctx, version, l)
	return s.time, err
}

// alone reads one version, and says what it changes.
func (h *logFiles) alone(ctx context.Context, version int64, l format.Limits) (*state, error) {
	s := &state{files: map[string]*log.Add{}, memory: l.Memory(), limits: l}
	return s, s.readJSON(ctx, h.tree, h.versions[version])
}

// load reads the log up to a version.
func (h *logFiles) load(ctx context.Context, version int64, l format.Limits, o format.OpenOptions) (*state, error) {
	s := &state{version: version, files: map[string]*log.Add{}, memory: l.Memory(), limits: l}
	from := int64(-1)
	var files []string
	for v, names := range h.checkpoints {
		if c := wholeCheckpoint(names); c != nil && v <= version && v > from {
			from, files = v, c
		}
	}
	slices.Sort(files)
	for _, name := range files {
		if err := s.readCheckpoint(ctx, h, name, o); err != nil {
			return nil, err
		}
	}
	s.begins.version = from
	for _, a := range s.files {
		if a != nil {
			s.begins.files++
		}
	}
	for v := from + 1; v <= version; v++ {
		name, ok := h.versions[v]
		if !ok {
			return nil, fault.Corruptf(fault.Span{Object: path.Join(h.dir, log.Dir)}, "",
				"version %d is missing: the log goes on to %d", v, version)
		}
		before := s.time
		s.time, s.operation = 0, ""
		if err := s.readJSON(ctx, h.tree, name); err != nil {
			return nil, err
		}
		s.commits = append(s.commits, commit{v, s.about()})
		s.time = max(s.time, before)
	}
	at := fault.Span{Object: path.Join(h.dir, log.Dir)}
	if s.metadata == nil || s.protocol == nil {
		return nil, fault.Corruptf(at, "", "expected the actions metaData and protocol, found at most one of them")
	}
	return s, nil
}

// perFile estimates the memory of a file's entry, in bytes, besides its strings.
const perFile = 512

// apply applies an action.
func (s *state) apply(a *log.Action, at fault.Span) error {
	if s.named != nil && a.Add != nil {
		s.named(a.Add.Path)
	}
	if s.named != nil && a.Remove != nil {
		s.named(a.Remove.Path)
	}
	switch {
	case a.Protocol != nil:
		s.protocol = a.Protocol
	case a.MetaData != nil:
		s.metadata = a.MetaData
	case a.Add != nil:
		if a.Add.Path == "" || a.Add.Size < 0 {
			return fault.Corruptf(at, "add", "expected a path and a size of 0 or more, found %q and %d", a.Add.Path,
				a.Add.Size)
		}
		if err := s.memory.Take(perFile+int64(len(a.Add.Path)+len(a.Add.Stats)), at, "add"); err != nil {
			return err
		}
		s.changed = s.changed || a.Add.Changed
		key := a.Add.Path + "\x00" + a.Add.Vector.ID()
		if _, known := s.files[key]; !known {
			s.order = append(s.order, key)
		}
		s.files[key] = a.Add
	case a.Remove != nil: // it may be added again, as by RESTORE: its key stays in the order, once
		s.changed = s.changed || a.Remove.Changed
		if key := a.Remove.Path + "\x00" + a.Remove.Vector.ID(); s.files[key] != nil {
			s.files[key] = nil
		}
	case a.Sidecar != nil:
		s.sidecars = append(s.sidecars, a.Sidecar.Path)
	case a.CommitInfo != nil:
		s.operation, _ = a.CommitInfo["operation"].(string)
		s.engine, _ = a.CommitInfo["engineInfo"].(string)
		for _, k := range []string{"inCommitTimestamp", "timestamp"} {
			if n, ok := a.CommitInfo[k].(float64); ok {
				s.time = int64(n)
				break
			}
		}
	}
	return nil
}

// readTop reads a checkpoint in JSON; its sidecars contain the files.
func (s *state) readTop(ctx context.Context, h *logFiles, name string, o format.OpenOptions) error {
	s.sidecars = nil
	if err := s.readJSON(ctx, h.tree, name); err != nil {
		return err
	}
	return s.readSidecars(ctx, h, name, o)
}

// readSidecars reads the sidecars of the checkpoint name.
func (s *state) readSidecars(ctx context.Context, h *logFiles, name string, o format.OpenOptions) error {
	const dir = "_sidecars"
	if len(s.sidecars) > 0 && path.Base(path.Dir(name)) == dir {
		return fault.Corruptf(fault.Span{Object: name}, "sidecar", "a sidecar of a checkpoint names further sidecars")
	}
	s.begins.beside = s.begins.beside || len(s.sidecars) > 0 || strings.HasSuffix(name, ".json")
	for _, x := range s.sidecars {
		if err := s.readCheckpoint(ctx, h, path.Join(h.dir, log.Dir, dir, path.Base(x)), o); err != nil {
			return err
		}
	}
	return nil
}

// readJSON reads the actions of a version.
func (s *state) readJSON(ctx context.Context, tree store.Tree, name string) error {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return err
	}
	defer src.Close()
	at := fault.Span{Object: name, Len: src.Size()}
	if most := s.limits.WithDefaults().Metadata; src.Size() > most {
		return fault.Limitf(at, "", "it has %d bytes; at most %d are read (metadata limit)", src.Size(), most)
	}
	if err := s.memory.Take(src.Size(), at, ""); err != nil {
		return err
	}
	defer s.memory.Return(src.Size())
	b := make([]byte, src.Size())
	if err := format.ReadFull(ctx, src, at, "", b); err != nil {
		return err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return fault.Corruptf(at, "", "expected the actions of a version, found none: what it changed is lost")
	}
	for n := 1; len(b) > 0; n++ {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		if b = rest; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var a log.Action
		if err := json.Unmarshal(line, &a); err != nil {
			return fault.Corruptf(at, fmt.Sprintf("line[%d]", n), "expected an action: %v", err)
		}
		if err := s.apply(&a, at); err != nil {
			return err
		}
	}
	return nil
}

// readCheckpoint reads a file of a checkpoint, and the files that it names.
func (s *state) readCheckpoint(ctx context.Context, h *logFiles, name string, o format.OpenOptions) error {
	if strings.HasSuffix(name, ".json") {
		return s.readTop(ctx, h, name, o)
	}
	o.Opts, o.Tracer = map[string]string{"arrow-schema": "ignore"}, nil
	r, err := parquet.Format.Open(ctx, format.Target{Tree: h.tree, Name: name}, o)
	if err != nil {
		return err
	}
	defer r.Close()
	var columns []string
	for _, f := range r.Schema().Fields() {
		switch t, _ := f.Type.(*arrow.StructType); {
		case t == nil:
		case f.Name == "add":
			for _, x := range t.Fields() {
				if slices.Contains([]string{"path", "partitionValues", "size", "stats", "deletionVector"}, x.Name) {
					columns = append(columns, "add."+x.Name)
				}
			}
		case f.Name == "metaData", f.Name == "protocol", f.Name == "sidecar", f.Name == "remove" && s.named != nil:
			columns = append(columns, f.Name)
		}
	}
	src := scan.Source{Reader: r, Objects: scan.NewObjects(h.tree), Dicts: scan.NewDicts(),
		Limits: s.limits.WithDefaults(), NoVerify: o.NoVerify}
	defer src.Objects.Close()
	defer src.Dicts.Close()
	s.sidecars = nil
	for b, err := range scan.Run(ctx, src, scan.Spec{Columns: columns, Unordered: true, Batch: 1024}, nil) {
		if err != nil {
			return err
		}
		s.begins.actions += b.NumRows()
		for i := range int(b.NumRows()) {
			a, err := actionOf(b, i)
			if err != nil {
				return fault.Corruptf(fault.Span{Object: name}, "", "%v", err)
			}
			if err := s.apply(a, fault.Span{Object: name}); err != nil {
				return err
			}
		}
	}
	return s.readSidecars(ctx, h, name, o)
}

// actionOf returns the action in row i of a checkpoint. The columns of add may be separate columns of the batch.
func actionOf(b arrow.RecordBatch, i int) (*log.Action, error) {
	row, add := map[string]any{}, map[string]any{}
	for c := range int(b.NumCols()) {
		col, name := b.Column(c), b.ColumnName(c)
		if col.IsNull(i) {
			continue
		}
		v := col.GetOneForMarshal(i)
		if k, ok := strings.CutPrefix(name, "add."); ok {
			add[k] = v
		} else if slices.Contains([]string{"path", "partitionValues", "size", "stats", "deletionVector"}, name) {
			add[name] = v
		} else {
			row[name] = v
		}
	}
	if add["path"] != nil {
		row["add"] = add
	}
	text, err := json.Marshal(row)
	if err != nil {
		return nil, err
	}
	a := &log.Action{}
	return a, json.Unmarshal(text, a)
}
