package kudufs

import (
	"bufio"
	"context"
	"errors"
	"path"
	"time"

	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/pb"
	"stoa/store"
)

// server writes the directories of one server.
type server struct {
	sink  store.Sink
	root  string // its directory in the sink
	uuid  string
	dir   string // UUID of its data directory
	made  time.Time
	log   *logContainer // with the log block manager: the open container; nil: none yet
	kind  string        // of block manager
	next  uint64        // id of the next block
	bytes int64
	files []string
}

// newServer creates the directories of a server, with their instance files.
func newServer(ctx context.Context, s store.Sink, root, uuid, manager string, at time.Time) (*server, error) {
	v := &server{sink: s, root: root, uuid: uuid, dir: madeID(uuid, "data"), made: at, kind: manager, next: 1}
	in := pb.AppendString(nil, 1, uuid)
	in = pb.AppendString(in, 2, "Formatted at "+at.UTC().Format("2006-01-02 15:04:05")+" by stoa")
	if err := v.container(ctx, fs.InstanceFile, "kudu.InstanceMetadataPB", in); err != nil {
		return nil, err
	}
	set := pb.AppendString(pb.AppendString(nil, 1, v.dir), 2, v.dir)
	d := pb.AppendString(pb.AppendMessage(nil, 1, set), 2, manager)
	d = pb.AppendUint(d, 3, fileBlock)
	return v, v.container(ctx, path.Join(fs.DataSubdir, fs.DirInstanceFile), "kudu.DirInstanceMetadataPB", d)
}

// file writes a whole file.
func (v *server) file(ctx context.Context, name string, body []byte) error {
	name = path.Join(v.root, name)
	o, err := v.sink.Create(ctx, name)
	if err != nil {
		return err
	}
	_, err = o.Write(body)
	v.bytes += int64(len(body))
	v.files = append(v.files, name)
	return errors.Join(err, o.Close())
}

// container writes a protobuf container with one message.
func (v *server) container(ctx context.Context, name, typ string, message []byte) error {
	return v.file(ctx, name, pbc.Append(nil, typ, message))
}

// block writes the next block. fill writes the CFile and returns its size.
func (v *server) block(ctx context.Context, fill func(*bufio.Writer) (int64, error)) (meta.BlockRef, error) {
	id := v.next
	v.next++
	if b := (meta.BlockRef{ID: id}); v.kind == fs.LogManager {
		return b, v.inContainer(ctx, b, fill)
	}
	name := path.Join(v.root, fs.DataSubdir, fs.BlockPath(id))
	o, err := v.sink.Create(ctx, name)
	if err != nil {
		return meta.BlockRef{}, err
	}
	w := bufio.NewWriterSize(o, 64<<10)
	n, err := fill(w)
	if err == nil {
		err = w.Flush()
	}
	if err = errors.Join(err, o.Close()); err != nil {
		return meta.BlockRef{}, err
	}
	v.bytes += n
	v.files = append(v.files, name)
	return meta.BlockRef{ID: id}, nil
}

// tablet writes a tablet's superblock, consensus metadata and empty log.
func (v *server) tablet(ctx context.Context, t *meta.Tablet) error {
	err := v.container(ctx, path.Join(fs.TabletMetaDir, t.ID), "kudu.tablet.TabletSuperBlockPB", t.Append(nil))
	if err == nil {
		err = v.container(ctx, path.Join(fs.ConsensusDir, t.ID), "kudu.consensus.ConsensusMetadataPB",
			t.Consensus.Append(nil))
	}
	if err == nil {
		err = v.file(ctx, path.Join(fs.WalsDir, t.ID, "wal-000000001"), wal.AppendEmpty(nil, t))
	}
	return err
}
