package kudufs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path"

	"stoa/fault"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/store"
)

const (
	// fileBlock is the block size of the file system that instance files name: blocks begin at its multiples. Kudu
	// works with any that is at least that of the real file system, for which 4096 is the usual one.
	fileBlock = 4096
	// maxContainer is the size from which Kudu adds no block to a container (--log_container_max_size).
	maxContainer = 10 << 30
)

// logContainer is the container to which blocks are being written. Its data file stays open; its metadata is a journal
// of them, which is written when it is closed.
type logContainer struct {
	name string // in the sink, without suffix
	data store.Object
	size int64
	meta []byte // the file
}

// inContainer writes a block to the open container.
func (v *server) inContainer(ctx context.Context, b meta.BlockRef, fill func(*bufio.Writer) (int64, error)) error {
	if v.log != nil && v.log.size >= maxContainer {
		if err := v.finish(ctx); err != nil {
			return err
		}
	}
	if v.log == nil {
		id := madeID(v.uuid, fmt.Sprintf("container %d", b.ID))
		c := &logContainer{name: path.Join(v.root, fs.DataSubdir, id), meta: pbc.Head("kudu.BlockRecordPB")}
		var err error
		if c.data, err = v.sink.Create(ctx, c.name+fs.DataSuffix); err != nil {
			return err
		}
		v.log = c
	}
	c := v.log
	w := bufio.NewWriterSize(c.data, 64<<10)
	if gap := -c.size & (fileBlock - 1); gap > 0 {
		if _, err := w.Write(make([]byte, gap)); err != nil {
			return err
		}
		c.size += gap
	}
	n, err := fill(w)
	if err = errors.Join(err, w.Flush()); err != nil {
		return err
	}
	r := pb.AppendMessage(nil, 1, pb.AppendFixed64(nil, 1, b.ID))
	r = pb.AppendUint(r, 2, fs.RecordCreate)
	r = pb.AppendUint(r, 3, uint64(v.made.UnixMicro()))
	r = pb.AppendInt(pb.AppendInt(r, 4, c.size), 5, n)
	c.meta = pbc.AppendRecord(c.meta, r)
	c.size += n
	v.bytes += n
	return nil
}

// finish closes the open container, if there is one.
func (v *server) finish(ctx context.Context) error {
	c := v.log
	if c == nil {
		return nil
	}
	v.log = nil
	if err := c.data.Close(); err != nil {
		return err
	}
	v.files = append(v.files, c.name+fs.DataSuffix, c.name+fs.MetadataSuffix)
	o, err := v.sink.Create(ctx, c.name+fs.MetadataSuffix)
	if err != nil {
		return err
	}
	_, err = o.Write(c.meta)
	v.bytes += int64(len(c.meta))
	return errors.Join(err, o.Close())
}

// abort closes the open container without its metadata.
func (v *server) abort() error {
	if v == nil || v.log == nil {
		return nil
	}
	defer func() { v.log = nil }()
	return v.log.data.Close()
}

// blockManager returns the block manager that a server's directories get.
func blockManager(name string) (string, error) {
	switch name {
	case "", fs.FileManager:
		return fs.FileManager, nil
	case fs.LogManager:
		return fs.LogManager, nil
	}
	return "", fault.Invalidf("block manager %s: expected %s or %s", name, fs.FileManager, fs.LogManager)
}
