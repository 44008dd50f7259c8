package iceberg

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"path"
	"slices"
	"strconv"

	"stoa/fault"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
	"stoa/internal/roaring"
)

// Tables of version 3 have no new files of position deletes, but deletion vectors in Puffin files, and at most one for
// a data file: a new one replaces the one before it, and the position deletes of the time when the table was of version
// 2. Source: the specifications of Iceberg tables, version 3, and of Puffin files.

// puffinMagic begins and ends a Puffin file, and begins its footer.
const puffinMagic = "PFA1"

// rowPositionID is the id of the metadata column that has the positions of rows.
const rowPositionID = 2147483645

// puffinBlob describes a blob in the footer.
type puffinBlob struct {
	Type       string            `json:"type"`
	Fields     []int             `json:"fields"`
	Snapshot   int64             `json:"snapshot-id"`
	Sequence   int64             `json:"sequence-number"`
	Offset     int64             `json:"offset"`
	Length     int64             `json:"length"`
	Properties map[string]string `json:"properties"`
}

// encodeVector returns a deletion vector as positions.vector reads it.
func encodeVector(rows []int64) []byte {
	bitmap := roaring.Encode(rows)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(bitmap)+4))
	b = binary.LittleEndian.AppendUint32(b, vectorMagic)
	b = append(b, bitmap...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// vectors writes a Puffin file with the deletion vectors of all data files with deleted rows, a manifest for each spec,
// and again the manifests in list whose vectors are replaced. It returns the manifests of the new snapshot.
func (w *changeWriter) vectors(list []meta.Manifest) ([]meta.Manifest, error) {
	var entries []meta.Entry
	var specs []int
	replaced := map[string]bool{}
	blobs, file := []puffinBlob{}, []byte(puffinMagic)
	at := path.Join(dataDir, w.run+"-deletes.puffin")
	for k, in := range w.c.table.Files() {
		if len(w.c.deleted[k]) == 0 {
			continue
		}
		f := &w.c.op.data[k]
		rows, err := w.deletedRows(k, in)
		if err != nil {
			return nil, err
		}
		vector := encodeVector(rows)
		if len(vector) > maxVector {
			return nil, fault.Limitf(fault.Span{Object: f.name}, "", "a deletion vector of %d bytes; at most %d are "+
				"allowed", len(vector), maxVector)
		}
		blob := puffinBlob{"deletion-vector-v1", []int{rowPositionID}, -1, -1, int64(len(file)), int64(len(vector)),
			map[string]string{"referenced-data-file": f.Path, "cardinality": strconv.Itoa(len(rows))}}
		file, blobs = append(file, vector...), append(blobs, blob)
		e := meta.Entry{Status: 1, Snapshot: &w.snap.ID, File: meta.DataFile{Content: meta.PositionDeletes,
			Path: w.c.draft.location + "/" + at, Format: "PUFFIN", Rows: int64(len(rows)), ReferencedFile: f.Path,
			Offset: &blob.Offset, Size: &blob.Length, Partition: f.Partition}}
		if e.File.Partition == nil {
			e.File.Partition = map[string]any{}
		}
		specs, replaced[f.name] = append(specs, f.spec), true
		entries, w.addedRows = append(entries, e), w.addedRows+e.File.Rows
	}
	if len(entries) == 0 {
		return list, nil
	}
	file, err := endPuffin(file, blobs)
	if err != nil {
		return nil, err
	}
	w.names, w.bytes, w.added = append(w.names, at), w.bytes+int64(len(file)), int64(len(entries))
	if err := lake.Put(w.ctx, w.sink, at, file); err != nil {
		return nil, err
	}
	for i := range entries {
		entries[i].File.Bytes = int64(len(file))
	}
	out, err := w.withoutVectors(list, replaced)
	if err != nil {
		return nil, err
	}
	return w.addVectors(out, entries, specs)
}

// addVectors writes a manifest for each run of vectors of a spec, and appends it to a list.
func (w *changeWriter) addVectors(list []meta.Manifest, entries []meta.Entry, specs []int) ([]meta.Manifest, error) {
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && specs[n] == specs[0] {
			n++
		}
		m, err := w.deleteManifest(specs[0], entries[:n])
		if err != nil {
			return nil, err
		}
		list, entries, specs = append(list, m), entries[n:], specs[n:]
	}
	return list, nil
}

// deletedRows returns the deleted rows of a data file, with those that were before.
func (w *changeWriter) deletedRows(k int, in *lake.Input) (rows []int64, err error) {
	if in.Deleted != nil {
		if rows, err = in.Deleted(w.ctx); err != nil {
			return nil, err
		}
	}
	rows = append(slices.Clone(rows), w.c.deleted[k]...)
	slices.Sort(rows)
	return slices.Compact(rows), nil
}

// endPuffin adds the footer to a Puffin file.
func endPuffin(file []byte, blobs []puffinBlob) ([]byte, error) {
	text, err := json.Marshal(map[string]any{"blobs": blobs, "properties": map[string]string{"created-by": "stoa"}})
	if err != nil {
		return nil, err
	}
	file = append(append(file, puffinMagic...), text...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(text)))
	file = binary.LittleEndian.AppendUint32(file, 0) // flags: the text is not compressed
	return append(file, puffinMagic...), nil
}

// withoutVectors returns the manifests of a list. Those that have vectors of the given data files are written again,
// with these vectors as deleted.
func (w *changeWriter) withoutVectors(list []meta.Manifest, of map[string]bool) (out []meta.Manifest, err error) {
	for _, m := range list {
		if m.Content != meta.DeleteManifest {
			out = append(out, m)
			continue
		}
		if m, err = w.replaceVectors(m, of); err != nil {
			return nil, err
		}
		if m.Added+m.Existing+m.Deleted > 0 {
			out = append(out, m)
		}
	}
	return out, nil
}

// replaceVectors returns a manifest of deletes, or one that is written in its place.
func (w *changeWriter) replaceVectors(m meta.Manifest, of map[string]bool) (meta.Manifest, error) {
	name, err := w.c.op.name(m.Path)
	if err != nil {
		return m, err
	}
	old, err := meta.ReadManifest(w.ctx, w.c.op.tree, name, w.c.op.o.Limits.WithDefaults().Metadata, m)
	if err != nil {
		return m, err
	}
	var entries []meta.Entry
	gone := int64(0)
	for _, e := range old {
		if e.Status == 2 {
			continue
		}
		if e.Sequence == nil {
			e.Sequence = &m.Sequence
		}
		if e.FileSequence == nil {
			e.FileSequence = &m.Sequence
		}
		if e.Snapshot == nil {
			e.Snapshot = &m.Snapshot
		}
		e.Status = 0
		data, err := w.c.op.name(e.File.ReferencedFile)
		if e.File.Format == "PUFFIN" && err == nil && of[data] {
			e.Status, e.Snapshot = 2, &w.snap.ID
			gone++
			w.removed, w.removedRows = w.removed+1, w.removedRows+e.File.Rows
		}
		entries = append(entries, e)
	}
	if gone == 0 {
		return m, nil
	}
	return w.deleteManifest(m.Spec, entries)
}

// deleteManifest writes a manifest of deletes.
func (w *changeWriter) deleteManifest(spec int, entries []meta.Entry) (m meta.Manifest, err error) {
	terms, err := w.c.op.terms(w.c.op.table.Spec(spec))
	if err != nil {
		return m, err
	}
	m, err = w.manifest(meta.DeleteManifest, spec, terms, leavesOf(deletesSchema.Fields()), entries)
	m.Added = 0
	for _, e := range entries {
		switch e.Status {
		case 0:
			m.Existing, m.ExistingRows = m.Existing+1, m.ExistingRows+e.File.Rows
			m.MinSequence = min(m.MinSequence, *e.Sequence)
		case 1:
			m.Added, m.AddedRows = m.Added+1, m.AddedRows+e.File.Rows
		case 2:
			m.Deleted, m.DeletedRows = m.Deleted+1, m.DeletedRows+e.File.Rows
		}
	}
	return m, err
}

// assignRows gives ids to the rows of the manifests that have none yet, and says so in the snapshot.
func (w *changeWriter) assignRows(list []meta.Manifest) error {
	if w.c.op.table.NextRow == nil {
		return fault.Corruptf(fault.Span{Object: w.c.op.file}, "next-row-id",
			"a table of version 3 has it; it is missing")
	}
	first := *w.c.op.table.NextRow
	next := first
	for i := range list {
		if m := &list[i]; m.Content == meta.Data && m.FirstRow == nil {
			at := next
			m.FirstRow = &at
			next += m.AddedRows + m.ExistingRows
		}
	}
	added := next - first
	w.snap.FirstRow, w.snap.AddedRows = &first, &added
	return nil
}
