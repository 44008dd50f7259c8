package cluster

import (
	"context"
	"path"

	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
)

// firstIndex is the index of a tablet's first operation.
const firstIndex = 1

// logAlone reads the log of a tablet that has no superblock; nil if there is none from which a schema is known.
func logAlone(ctx context.Context, f *fs.FS, id string) (*meta.Tablet, *wal.Logged, error) {
	if f.WALDir == "" {
		return nil, nil, nil
	}
	t := &meta.Tablet{ID: id, TableID: id, Object: path.Join(f.WALDir, fs.WalsDir, id), State: meta.TabletReady,
		LastDurableMRS: -1, Rebuilt: true}
	t.Extra.HistoryMaxAge = -1
	if wal.SchemaOfLog(ctx, f, t); len(t.Schema.Columns) == 0 {
		return nil, nil, nil
	}
	log, err := wal.Replay(ctx, f, t, wal.Nowhere)
	return t, log, err
}
