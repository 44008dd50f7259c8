package wal

import (
	"context"
	"path"

	"stoa/fault"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
)

// none notes that there is no log.
func (x *Replayer) none(ctx context.Context, f *fs.FS) {
	code, at, why := noLog(ctx, f, x.T)
	if x.Out.Missing = code != ""; x.Out.Missing {
		x.note(code, at, "", why)
	}
}

// noLog is the finding about a tablet without a log; code is "" for tombstones, which have none. A server creates the
// log before the superblock: if the directory of logs is there, the log was deleted; if not, the directories may have
// been copied without it.
func noLog(ctx context.Context, f *fs.FS, t *meta.Tablet) (code string, at fault.Span, why string) {
	if !t.HasData() || t.Rebuilt {
		return "", at, ""
	}
	what := "the tablet has no write-ahead log"
	if t.ID == meta.SystemCatalogID {
		what = "the master's catalogue has no write-ahead log: names of tables, and which tablets there must " +
			"be, may be missing"
	}
	if f.WALDir == "" {
		return "kudu.wal.missing", fault.Span{Object: t.Object}, what + ": what was not flushed is not here"
	}
	at.Object = path.Join(f.WALDir, fs.WalsDir, t.ID)
	if _, err := f.Tree.Stat(ctx, path.Join(f.WALDir, fs.WalsDir)); err != nil || t.State != meta.TabletReady {
		return "kudu.wal.missing", at, what + ": what was not flushed is not here"
	}
	return "kudu.wal.deleted", at, what + ", though the server's logs are here: what was not flushed is lost"
}
