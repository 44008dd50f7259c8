package iceberg

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg/internal/meta"
	"stoa/store"
)

// tableFiles is the location of a table, and its metadata.
type tableFiles struct {
	tree  store.Tree
	dir   string // of the table
	file  string // of its metadata
	table *meta.Table
}

const metadataSuffix = ".metadata.json"

// isMetadata reports whether a file is named like one with a table's metadata. Compressed ones are called
// v1.gz.metadata.json or, by early versions of Iceberg's library, v1.metadata.json.gz.
func isMetadata(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, ".gz"), metadataSuffix)
}

// find finds the metadata file of a target: the file itself, or the newest one in a table's directory. It returns a dir
// without a file for a table whose metadata is lost although other files of it exist. If version-hint.text names a file
// newer than all existing ones, that file is returned, and is missing. It is an error of class Unsupported if several
// files may be the newest one.
func find(ctx context.Context, tg format.Target) (dir, file string, err error) {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil {
		return "", "", err
	}
	if !info.Dir {
		if !isMetadata(tg.Name) {
			return "", "", nil
		}
		return path.Dir(path.Dir(tg.Name)), tg.Name, nil
	}
	var names []string
	lost := ""
	metadata := path.Join(tg.Name, metadataDir)
	for info, err := range tg.Tree.List(ctx, metadata) {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || store.NoFile(err) {
				err = nil
			}
			return "", "", err
		}
		if !info.Dir && isMetadata(info.Name) {
			names = append(names, info.Name)
		}
		if base := path.Base(info.Name); base == hintFile || strings.HasPrefix(base, "snap-") &&
			strings.HasSuffix(base, ".avro") {
			lost = tg.Name
		}
	}
	if len(names) == 0 {
		return lost, "", nil
	}
	file, err = newestOf(ctx, tg.Tree, metadata, names)
	return tg.Name, file, err
}

// hintedFile returns the file that version-hint.text names, or a newer one, because a commit writes the hint after the
// metadata; "" if there is no readable hint.
func hintedFile(ctx context.Context, tree store.Tree, dir string, names []string) string {
	b, err := readSmall(ctx, tree, path.Join(dir, hintFile), 1<<10)
	if err != nil {
		return ""
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return ""
	}
	own := map[int]string{}
	for _, name := range names {
		if isOwn(name) {
			own[versionOf(name)] = name
		}
	}
	for own[n+1] != "" {
		n++
	}
	return cmp.Or(own[n], path.Join(dir, fmt.Sprintf("v%d%s", n, metadataSuffix)))
}

// readSmall reads an object of at most limit bytes.
func readSmall(ctx context.Context, tree store.Tree, name string, limit int64) ([]byte, error) {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if src.Size() > limit {
		return nil, fault.Limitf(fault.Span{Object: name}, "", "it has %d bytes; at most %d are read (metadata limit)",
			src.Size(), limit)
	}
	b := make([]byte, src.Size())
	return b, format.ReadFull(ctx, src, fault.Span{Object: name, Len: src.Size()}, "", b)
}

// readMetadata reads a metadata file of at most limit bytes, before and after decompression.
func readMetadata(ctx context.Context, tree store.Tree, name string, limit int64) ([]byte, error) {
	b, err := readSmall(ctx, tree, name, limit)
	if err != nil || !bytes.HasPrefix(b, gzipMagic) {
		return b, err
	}
	at := fault.Span{Object: name, Len: int64(len(b))}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(io.LimitReader(z, limit+1))
	}
	if err != nil {
		return nil, fault.Corruptf(at, "", "gzip: %v", err)
	}
	if int64(len(b)) > limit {
		return nil, fault.Limitf(at, "", "it has more than %d bytes when decompressed, and no more are read (metadata "+
			"limit)", limit)
	}
	return b, nil
}

var gzipMagic = []byte{0x1f, 0x8b}

// probe implements Format.Probe.
func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	if tg.At.Len() > 0 {
		return format.No, nil
	}
	dir, file, err := find(ctx, tg)
	if err == nil && file == "" && dir != "" || errors.Is(err, fault.Unsupported) {
		return format.Certain, nil // opening it reports that
	}
	if err != nil || file == "" {
		return format.No, err
	}
	b, err := readMetadata(ctx, tg.Tree, file, tg.Limits.WithDefaults().Metadata) // the version may be its end
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fault.Corrupt), fault.OverBudget(err):
		return format.Certain, nil // opening it reports that
	case err != nil:
		return format.No, err
	}
	if strings.Contains(string(b), `"format-version"`) {
		return format.Certain, nil
	}
	return format.Likely, nil
}

// openPlace reads the metadata of a target.
func openPlace(ctx context.Context, tg format.Target, l format.Limits) (*tableFiles, error) {
	dir, file, err := find(ctx, tg)
	if err != nil {
		return nil, err
	}
	at := fault.Span{Object: tg.Name}
	if file == "" && dir != "" {
		return nil, fault.Corruptf(fault.Span{Object: path.Join(dir, metadataDir)}, "", "expected a file "+
			"*.metadata.json beside the hint or the snapshots, found none: nothing says which files are the table; "+
			"its Parquet files can be read one by one")
	}
	if file == "" {
		return nil, fault.Unsupportedf(at, "", "not a table of Iceberg: there is no metadata/*.metadata.json")
	}
	at.Object = file
	b, err := readMetadata(ctx, tg.Tree, file, l.WithDefaults().Metadata)
	if errors.Is(err, fs.ErrNotExist) && file != tg.Name {
		hint := fault.Span{Object: path.Join(dir, metadataDir, hintFile)}
		return nil, fault.Corruptf(hint, "", "expected %s, which it names, found only older metadata: what was "+
			"written last is not in them; each can be named and read", path.Base(file))
	}
	if err != nil {
		return nil, err
	}
	const perByte = 4 // estimated size of decoded JSON, per byte
	if err := l.Memory().Take(perByte*int64(len(b)), at, ""); err != nil {
		return nil, err
	}
	p := &tableFiles{tree: tg.Tree, dir: dir, file: file, table: &meta.Table{}}
	if err := json.Unmarshal(b, p.table); err != nil {
		return nil, fault.Corruptf(at, "", "expected the JSON of a table: %v", err)
	}
	switch v := p.table.FormatVersion; {
	case v < 1:
		return nil, fault.Corruptf(at, "format-version", "expected 1 to 3, found %d", v)
	case v > 3:
		return nil, fault.Unsupportedf(at, "format-version", "expected 1 to 3, found %d", v)
	case p.table.Location == "":
		return nil, fault.Corruptf(at, "location", "the table's location is missing")
	}
	return p, p.checkNewest(ctx, tg.Name)
}

// checkNewest returns an error of class Corrupt if the file was only found as the newest of a table without a
// catalogue whose hint cannot be read, and the manifest list of a later snapshot is beside it: newer metadata are
// lost.
func (p *tableFiles) checkNewest(ctx context.Context, named string) error {
	dir := path.Join(p.dir, metadataDir)
	if p.file == named || path.Base(p.file)[0] != 'v' || hintedFile(ctx, p.tree, dir, nil) != "" {
		return nil
	}
	for info, err := range p.tree.List(ctx, dir) {
		if err != nil {
			return err
		}
		rest, is := strings.CutPrefix(path.Base(info.Name), "snap-")
		id, _, _ := strings.Cut(rest, "-")
		n, err := strconv.ParseInt(id, 10, 64)
		if !is || err != nil || p.table.Snapshot(n) != nil ||
			!p.table.Precedes(ctx, p.tree, info.Name, format.Limits{}.WithDefaults().Metadata) {
			continue // snapshots that expired, or were never committed, leave such files as well
		}
		return fault.Corruptf(fault.Span{Object: info.Name}, "", "it lists a snapshot that follows those of %s, the "+
			"newest metadata found, and %s is missing or damaged: what was written last is not in them; each can be "+
			"named and read", path.Base(p.file), hintFile)
	}
	return ctx.Err()
}

// name maps an address in the metadata to a name in the tree: addresses below the table's location are below the
// directory that was opened, wherever that is now.
func (p *tableFiles) name(address string) (string, error) {
	location := strings.TrimRight(p.table.Location, "/")
	if rest, ok := strings.CutPrefix(plainPath(address), plainPath(location)+"/"); ok {
		name := path.Join(p.dir, rest)
		if within := path.Clean(rest); within != ".." && !strings.HasPrefix(within, "../") {
			return name, nil
		}
	}
	return "", fault.Unsupportedf(fault.Span{Object: p.file}, "", "%q is outside of the table's location, %q; such "+
		"files are not read", address, location)
}

// plainPath normalizes an address: local paths without scheme, s3 for s3a.
func plainPath(address string) string {
	for _, scheme := range []string{"file://", "file:"} {
		if rest, ok := strings.CutPrefix(address, scheme); ok {
			return rest
		}
	}
	if rest, ok := strings.CutPrefix(address, "s3a://"); ok {
		return "s3://" + rest
	}
	return address
}

// snapshot returns the snapshot that option at names; nil if the table has none.
func (p *tableFiles) snapshot(at string) (*meta.Snapshot, error) {
	t := p.table
	span := fault.Span{Object: p.file}
	if at == "" {
		if t.CurrentSnapshot == nil || *t.CurrentSnapshot == -1 {
			return nil, nil
		}
		s := t.Snapshot(*t.CurrentSnapshot)
		if s == nil {
			return nil, fault.Corruptf(span, "current-snapshot-id", "there is no snapshot %d", *t.CurrentSnapshot)
		}
		return s, nil
	}
	if ref, ok := t.Refs[at]; ok {
		if s := t.Snapshot(ref.ID); s != nil {
			return s, nil
		}
		return nil, fault.Corruptf(span, "refs."+at, "there is no snapshot %d", ref.ID)
	}
	ms, err := moment(at)
	if err != nil {
		return nil, err
	}
	if s := t.Snapshot(ms); s != nil {
		return s, nil
	}
	var found *meta.Snapshot
	log := t.SnapshotLog
	if len(log) == 0 {
		for _, s := range t.Snapshots {
			log = append(log, meta.SnapshotEntry{Time: s.Time, ID: s.ID})
		}
	}
	for _, e := range log { // find the snapshot that was current at that time
		if s := t.Snapshot(e.ID); e.Time <= ms && s != nil {
			found = s
		}
	}
	if found == nil {
		return nil, fault.Invalidf("iceberg: option at=%s: the table has no snapshot as old as that", at)
	}
	return found, nil
}

// moment parses a time, as milliseconds since 1970, or the id of a snapshot.
func moment(at string) (int64, error) {
	if n, err := strconv.ParseInt(at, 10, 64); err == nil {
		return n, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, at); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, fault.Invalidf("iceberg: option at=%s: expected a snapshot, a branch or tag, a time such as "+
		"2006-01-02T15:04:05Z, or a day such as 2006-01-02", at)
}
