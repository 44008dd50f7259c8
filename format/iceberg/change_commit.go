package iceberg

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
	"stoa/internal/sorted"
	"stoa/store"
)

// deletesSchema is the schema of files of position deletes.
var deletesSchema = arrow.NewSchema([]arrow.Field{
	{Name: "file_path", Type: arrow.BinaryTypes.String, Metadata: fieldID(pathID)},
	{Name: "pos", Type: arrow.PrimitiveTypes.Int64, Metadata: fieldID(positionID)}}, nil)

func fieldID(id int) arrow.Metadata {
	return arrow.NewMetadata([]string{lake.FieldID}, []string{strconv.Itoa(id)})
}

// commit writes the files of deletes, the manifests and their list, and prepares the metadata.
func (c *Change) commit(ctx context.Context, s store.Sink, files []lake.File) (names []string, n int64, err error) {
	put := func(name string, b []byte) error {
		names, n = append(names, name), n+int64(len(b))
		return lake.Put(ctx, s, name, b)
	}
	t := c.op.table
	snap := newSnapshot(cmp.Or(c.draft.o.Time, time.Now().UnixMilli()), t.LastSequence+1)
	if c.op.snap != nil {
		snap.Parent = &c.op.snap.ID
		snap.Time = max(snap.Time, c.op.snap.Time)
	}
	schema := t.CurrentSchema
	snap.SchemaID = &schema
	var list []meta.Manifest
	if c.op.snap != nil && c.op.snap.ManifestList != "" {
		name, err := c.op.name(c.op.snap.ManifestList)
		if err != nil {
			return nil, 0, err
		}
		most := c.op.o.Limits.WithDefaults().Metadata
		if list, err = meta.ReadList(ctx, c.op.tree, name, most, c.op.snap.ID); err != nil {
			return nil, 0, err
		}
	}
	w := &changeWriter{c: c, ctx: ctx, sink: s, put: put, snap: snap, run: lake.NewUUID()}
	added, err := w.data(files)
	if err != nil {
		return names, n, err
	}
	if list, err = w.withDeletes(append(list, added...)); err != nil {
		return names, n, err
	}
	snap.Summary = c.summary(files, w)
	b, err := meta.WriteList(c.draft.version, snap, w.sync(), list)
	if err != nil {
		return names, n, err
	}
	name := path.Join(metadataDir, fmt.Sprintf("snap-%d-1-%s.avro", snap.ID, w.run))
	snap.ManifestList = c.draft.location + "/" + name
	if err := put(name, b); err != nil {
		return names, n, err
	}
	return append(names, w.names...), n + w.bytes, c.metadata(ctx, snap)
}

// newSnapshot returns a snapshot with a random id.
func newSnapshot(ms, sequence int64) *meta.Snapshot {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return &meta.Snapshot{ID: int64(binary.LittleEndian.Uint64(b[:]) >> 1), Sequence: sequence, Time: ms}
}

// changeWriter writes the manifests of a change.
type changeWriter struct {
	c     *Change
	ctx   context.Context
	sink  store.Sink
	put   func(name string, b []byte) error
	snap  *meta.Snapshot
	run   string
	n     int // manifests
	names []string
	bytes int64 // of delete files

	// files of deletes, or deletion vectors, and the rows that they delete
	added, addedRows     int64
	removed, removedRows int64
}

// withDeletes writes the deletes, and returns a list with their manifests, in which rows have ids if they need some.
func (w *changeWriter) withDeletes(list []meta.Manifest) ([]meta.Manifest, error) {
	if w.c.draft.version < 3 {
		gone, err := w.deletes()
		w.added, w.addedRows = int64(len(w.names)), w.c.Deleted()
		return append(list, gone...), err
	}
	list, err := w.vectors(list)
	if err != nil {
		return nil, err
	}
	return list, w.assignRows(list)
}

func (w *changeWriter) sync() (out [16]byte) {
	_, _ = rand.Read(out[:])
	return out
}

// data writes the manifest of the added files.
func (w *changeWriter) data(files []lake.File) ([]meta.Manifest, error) {
	if len(files) == 0 {
		return nil, nil
	}
	d := w.c.draft
	leaves := leavesOf(d.stored.Fields())
	var entries []meta.Entry
	rows := int64(0)
	for _, f := range files {
		entries = append(entries, d.entry(f, leaves, w.snap.ID))
		rows += f.Rows
	}
	m, err := w.manifest(meta.Data, w.c.op.table.DefaultSpec, d.terms, leaves, entries)
	m.AddedRows, m.Partitions = rows, d.summaries(files)
	return []meta.Manifest{m}, err
}

// manifest writes a manifest.
func (w *changeWriter) manifest(content, spec int, terms []lake.Term, leaves []leaf, entries []meta.Entry,
) (m meta.Manifest, err error) {
	t := w.c.op.table
	h := meta.ManifestHeader{Version: w.c.draft.version, Schema: t.Schema(t.CurrentSchema),
		Spec: t.Spec(spec), Content: content}
	for i, f := range h.Spec.Fields {
		h.Partition = append(h.Partition, meta.AvroType{Name: avroName(f.Name), Type: avroType(&terms[i]), ID: f.ID})
	}
	for _, l := range leaves {
		h.Order = append(h.Order, l.id)
	}
	for i := range entries {
		entries[i].File.Partition = asWide(entries[i].File.Partition, terms)
	}
	b, err := meta.WriteManifest(h, w.sync(), entries)
	if err != nil {
		return m, err
	}
	name := path.Join(metadataDir, fmt.Sprintf("%s-m%d.avro", w.run, w.n))
	w.n++
	return meta.Manifest{Path: w.c.draft.location + "/" + name, Length: int64(len(b)), Spec: spec, Content: content,
			Sequence: w.snap.Sequence, MinSequence: w.snap.Sequence, Snapshot: w.snap.ID, Added: int64(len(entries))},
		w.put(name, b)
}

// deletes writes a file of deletes for each partition with deleted rows, and a manifest for each spec.
func (w *changeWriter) deletes() (out []meta.Manifest, err error) {
	type place struct {
		spec int
		key  string
	}
	of := map[place][]int{}
	var order []place
	for k := range w.c.op.data {
		if f := &w.c.op.data[k]; len(w.c.deleted[k]) > 0 {
			p := place{f.spec, fmt.Sprintf("%#v", f.Partition)}
			if of[p] == nil {
				order = append(order, p)
			}
			of[p] = append(of[p], k)
		}
	}
	sorted.StablyBy(order, func(a, b place) int { return a.spec - b.spec })
	var entries []meta.Entry
	rows := int64(0)
	for i, p := range order {
		e, err := w.deleteFile(i, of[p])
		if err != nil {
			return nil, err
		}
		entries, rows = append(entries, e), rows+e.File.Rows
		if i+1 < len(order) && order[i+1].spec == p.spec {
			continue
		}
		terms, err := w.c.op.terms(w.c.op.table.Spec(p.spec))
		if err != nil {
			return nil, err
		}
		m, err := w.manifest(meta.DeleteManifest, p.spec, terms, leavesOf(deletesSchema.Fields()), entries)
		if err != nil {
			return nil, err
		}
		m.AddedRows = rows
		out, entries, rows = append(out, m), nil, 0
	}
	return out, nil
}

// deleteFile writes the deleted rows of data files of one partition, in the order that Iceberg requires: by path, then
// by position.
func (w *changeWriter) deleteFile(n int, data []int) (e meta.Entry, err error) {
	sorted.By(data, func(a, b int) int { return cmp.Compare(w.c.op.data[a].Path, w.c.op.data[b].Path) })
	b := array.NewRecordBuilder(memory.DefaultAllocator, deletesSchema)
	defer b.Release()
	for _, k := range data {
		rows := w.c.deleted[k]
		slices.Sort(rows)
		for _, pos := range rows {
			b.Field(0).(*array.StringBuilder).Append(w.c.op.data[k].Path)
			b.Field(1).(*array.Int64Builder).Append(pos)
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	name := fmt.Sprintf("%05d-%s-deletes.parquet", n, w.run)
	f, err := lake.WriteFile(w.ctx, w.sink, path.Join(dataDir, name), rec, w.c.wo)
	if err != nil {
		return e, err
	}
	w.names, w.bytes = append(w.names, f.Name), w.bytes+f.Bytes
	plain := draft{location: w.c.draft.location}
	e = plain.entry(f, leavesOf(deletesSchema.Fields()), w.snap.ID)
	e.File.Content, e.File.Partition = meta.PositionDeletes, w.c.op.data[data[0]].Partition
	if e.File.Partition == nil {
		e.File.Partition = map[string]any{}
	}
	return e, nil
}

// summary returns the counts of a snapshot.
func (c *Change) summary(files []lake.File, w *changeWriter) map[string]string {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	rows, size := int64(0), int64(0)
	for _, f := range files {
		rows, size = rows+f.Rows, size+f.Bytes
	}
	all, bytes, deletes := rows, size+w.bytes, w.addedRows-w.removedRows
	for _, f := range c.op.data {
		all, bytes = all+f.Rows, bytes+f.Bytes
	}
	for _, f := range c.op.deletes {
		deletes, bytes = deletes+f.Rows, bytes+f.Bytes
	}
	m := map[string]string{"operation": "overwrite", "added-data-files": text(int64(len(files))),
		"added-records": text(rows), "added-files-size": text(size + w.bytes),
		"total-data-files": text(int64(len(c.op.data) + len(files))), "total-records": text(all),
		"total-files-size":       text(bytes),
		"total-delete-files":     text(int64(len(c.op.deletes)) + w.added - w.removed),
		"total-position-deletes": text(deletes),
		"total-equality-deletes": "0", "engine-name": engine}
	switch {
	case w.added == 0:
		m["operation"] = "append"
		return m
	case len(files) == 0:
		m["operation"] = "delete"
	}
	m["added-delete-files"], m["added-position-deletes"] = text(w.added), text(w.addedRows)
	kind := "position-delete-files"
	if c.draft.version >= 3 {
		kind = "dvs"
	}
	m["added-"+kind] = text(w.added)
	if w.removed > 0 {
		m["removed-delete-files"], m["removed-dvs"] = text(w.removed), text(w.removed)
		m["removed-position-deletes"] = text(w.removedRows)
	}
	return m
}

// metadata prepares the new metadata: those of the table, in which only what the snapshot changes is changed.
func (c *Change) metadata(ctx context.Context, snap *meta.Snapshot) error {
	b, err := readMetadata(ctx, c.op.tree, c.op.file, c.op.o.Limits.WithDefaults().Metadata)
	if err != nil {
		return err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(b, &doc); err != nil {
		return fault.Corruptf(fault.Span{Object: c.op.file}, "", "expected the JSON of a table: %v", err)
	}
	t := c.op.table
	refs, err := membersOf(doc["refs"])
	if err != nil {
		return fault.Corruptf(fault.Span{Object: c.op.file}, "refs", "%v", err)
	}
	var failed error
	set := func(m map[string]json.RawMessage, key string, v any) {
		b, err := json.Marshal(v)
		failed, m[key] = cmp.Or(failed, err), b
	}
	main, err := membersOf(refs["main"]) // with what others have set, such as how long its snapshots are kept
	if err != nil {
		return fault.Corruptf(fault.Span{Object: c.op.file}, "refs.main", "%v", err)
	}
	set(main, "snapshot-id", snap.ID)
	set(main, "type", "branch")
	set(refs, "main", main)
	set(doc, "refs", refs)
	set(doc, "last-sequence-number", snap.Sequence)
	set(doc, "last-updated-ms", max(snap.Time, t.LastUpdated))
	set(doc, "current-snapshot-id", snap.ID)
	if snap.AddedRows != nil {
		set(doc, "next-row-id", *snap.FirstRow+*snap.AddedRows)
	}
	add := func(key string, v any) {
		var list []json.RawMessage
		if r := doc[key]; r != nil {
			failed = cmp.Or(failed, json.Unmarshal(r, &list))
		}
		b, err := json.Marshal(v)
		failed = cmp.Or(failed, err)
		set(doc, key, append(list, b))
	}
	if c.promoted != nil {
		add("schemas", *c.promoted)
		set(doc, "current-schema-id", c.promoted.ID)
	}
	add("snapshots", *snap)
	add("snapshot-log", meta.SnapshotEntry{Time: snap.Time, ID: snap.ID})
	was := c.draft.location + "/" + path.Join(metadataDir, path.Base(c.op.file))
	add("metadata-log", meta.MetadataEntry{Time: t.LastUpdated, File: was})
	if failed != nil {
		return failed
	}
	c.name = path.Join(metadataDir, fmt.Sprintf("v%d%s", versionOf(c.op.file)+1, metadataSuffix))
	c.json, err = json.MarshalIndent(doc, "", "  ")
	return err
}

// membersOf returns the members of an object of JSON, none if there is no object.
func membersOf(object json.RawMessage) (out map[string]json.RawMessage, err error) {
	out = map[string]json.RawMessage{}
	if object != nil {
		err = json.Unmarshal(object, &out)
	}
	return out, err
}

// Hint returns the name of the file that says which metadata are the newest, and its content after the change.
func (c *Change) Hint() (name, text string) {
	return path.Join(metadataDir, hintFile), strconv.Itoa(versionOf(c.name))
}
