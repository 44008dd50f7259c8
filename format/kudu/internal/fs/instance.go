package fs

import (
	"cmp"
	"context"
	"strconv"

	"stoa/fault"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/store"
	"stoa/wire"
)

// Instance is an InstanceMetadataPB: it identifies the server that a root belongs to.
type Instance struct {
	Object    string
	At        fault.Span // span of the message
	UUID      string
	Stamp     string     // when and where the server's directories were formatted
	Key       fault.Span // span of the first key, if Encrypted
	Encrypted bool       // it has the (wrapped) key of the server's data
	Wrapped   string     // that key, as encrypted by the key provider; with several tenants, that of the first
}

// Block managers, as dir_type names them.
const (
	FileManager  = "file" // each block is a file
	LogManager   = "log"  // blocks lie in containers
	RocksManager = "logr" // so they do, and their places are in RocksDB
)

// DataDir is a data directory, with its DirInstanceMetadataPB.
type DataDir struct {
	Root      string
	Dir       string // directory with the blocks
	Instance  string // the file block_manager_instance; "" if there is none
	UUID      string
	Index     int      // in all_uuids; -1 if it is not known
	All       []string // all_uuids: those of all data directories of the server
	Type      string   // the block manager: "log", "file", "logr"
	BlockSize int64    // of the file system, in bytes
	Err       error    // why the instance could not be read

	typeAt  fault.Span // of Type, in the instance
	foreign bool       // it is another server's: see findForeign
}

// readInstance reads an instance file. notes are damage that did not prevent reading it.
func readInstance(ctx context.Context, tree store.Tree, name string, o pbc.Options) (in Instance, notes []error,
	err error) {
	in.Object = name
	notes, err = pbc.Read(ctx, tree, name, o, "instance", in.Parse)
	return in, notes, err
}

// Parse reads an InstanceMetadataPB.
func (in *Instance) Parse(c *wire.Cursor) {
	in.At = c.SpanOf(c.Pos(), c.Left())
	for r := pb.NewReader(c); r.Next(); {
		off := c.Pos()
		switch r.Field() {
		case 1:
			in.UUID = r.String("uuid")
		case 2:
			in.Stamp = r.String("format_stamp")
		case 3:
			in.Wrapped = r.String("server_key")
			in.Encrypted = in.Wrapped != "" || in.Encrypted
			in.Key = c.SpanOf(off, c.Pos()-off)
		case 4:
			r.Bytes("server_key_iv")
		case 5:
			r.Bytes("server_key_version")
		case 6:
			m := r.Message("tenants")
			for r := pb.NewReader(m); r.Next(); {
				if r.Field() == 3 {
					key := r.String("tenant_key")
					in.Wrapped, in.Encrypted = cmp.Or(in.Wrapped, key), key != "" || in.Encrypted
				} else {
					r.Unknown()
				}
			}
			r.Join(m)
			if in.Key.Object == "" {
				in.Key = c.SpanOf(off, c.Pos()-off)
			}
		default:
			r.Unknown()
		}
	}
	if c.Err() == nil && in.UUID == "" {
		c.Fail(0, c.Pos(), "uuid", "a required field is missing")
	}
}

// readDirInstance reads a block_manager_instance into d.
func readDirInstance(ctx context.Context, tree store.Tree, d *DataDir, o pbc.Options) ([]error, error) {
	return pbc.Read(ctx, tree, d.Instance, o, "block manager instance", d.Parse)
}

// Parse reads a DirInstanceMetadataPB.
func (d *DataDir) Parse(c *wire.Cursor) {
	for r := pb.NewReader(c); r.Next(); {
		off := c.Pos()
		switch r.Field() {
		case 1:
			m := r.Message("dir_set")
			for r := pb.NewReader(m); r.Next(); {
				switch r.Field() {
				case 1:
					d.UUID = r.String("uuid")
				case 2:
					d.All = append(d.All, r.String("all_uuids["+strconv.Itoa(len(d.All))+"]"))
				default:
					r.Unknown()
				}
			}
			r.Join(m)
		case 2:
			d.Type = r.String("dir_type")
			d.typeAt = c.SpanOf(off, c.Pos()-off)
		case 3:
			n := r.Uint("filesystem_block_size_bytes")
			if n > 1<<30 {
				c.Fail(off, c.Pos()-off, "filesystem_block_size_bytes", "%d", n)
				return
			}
			d.BlockSize = int64(n)
		default:
			r.Unknown()
		}
	}
	if c.Err() == nil && (d.UUID == "" || d.Type == "") {
		c.Fail(0, c.Pos(), "dir_set", "a required field is missing: uuid or dir_type")
	}
}
