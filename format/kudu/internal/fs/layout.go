package fs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/format"
	"stoa/format/kudu/internal/pbc"
	"stoa/store"
)

// The directories of a server. A root is a directory that was configured for the server; each has a file instance, a
// protobuf container that names the server. One directory may be several roots.
//
//	WAL root        wals/TABLET/wal-000000001 …
//	metadata root   tablet-meta/TABLET (superblock), consensus-meta/TABLET; the WAL root, a data root, or a separate
//	                directory
//	data root       data/block_manager_instance, and in data/ the blocks:
//	                file block manager   AA/BB/CC/ID; AA, BB, CC are bits 47–24 of the block's id in hexadecimal
//	                log block manager    pairs of files, see Container
//	                logr block manager   the same without .metadata: the records are in a RocksDB, rdb/. Not supported
//
// A server has at least one data directory. Their order is the list all_uuids in every block_manager_instance; the
// upper 16 bits of a block's id in the file block manager are its data directory's index in that list.
const (
	InstanceFile    = "instance"
	DirInstanceFile = "block_manager_instance"
	WalsDir         = "wals"
	TabletMetaDir   = "tablet-meta"
	ConsensusDir    = "consensus-meta"
	DataSubdir      = "data"
)

// Suffixes of a container's two files.
const (
	MetadataSuffix = ".metadata"
	DataSuffix     = ".data"
)

// RecoverySuffix ends the name of the directory to which Kudu moves a log before it replays it into a new one. If that
// directory exists, the new log is incomplete.
const RecoverySuffix = ".recovery"

// Layout has the locations of a server's directories.
type Layout struct {
	WALDir   string   // root with wals/; "" if there is none
	MetaDir  string   // root with tablet-meta/; "" if there is none
	DataDirs []string // roots with data/, or directories that have block_manager_instance themselves

	Stray []string // files block_manager_instance that belong to no data directory
}

// FSOptions are options for reading directories.
type FSOptions struct {
	Limits   format.Limits
	NoVerify bool
	// Shallow limits FindServers to a few levels and a few thousand directories: enough to determine what kind of place
	// it is.
	Shallow bool
	// Locked reports whether a server holds the lock on a file. nil: LockHolder if the tree is the machine's file
	// system, else no lock is looked for.
	Locked func(name string) (pid int, held bool, err error)
}

// Pbc are the options for reading protobuf containers.
func (o FSOptions) Pbc() pbc.Options { return pbc.Options{Limits: o.Limits, NoVerify: o.NoVerify} }

// OrLocal returns tree, or the machine's file system if tree is nil.
func OrLocal(tree store.Tree) store.Tree {
	if tree == nil {
		return store.Local{}
	}
	return tree
}

// has reports whether dir is one of l's directories, or the data/ in one.
func (l Layout) has(dir string) bool {
	return slices.ContainsFunc(append([]string{l.WALDir, l.MetaDir}, l.DataDirs...), func(d string) bool {
		return d != "" && (path.Clean(d) == path.Clean(dir) || path.Join(d, DataSubdir) == path.Clean(dir))
	})
}

// distinct returns dirs without duplicates.
func distinct(dirs []string) (out []string) {
	for _, d := range dirs {
		if !slices.ContainsFunc(out, func(x string) bool { return path.Clean(x) == path.Clean(d) }) {
			out = append(out, d)
		}
	}
	return out
}

// IsUUID reports whether s is a UUID as Kudu writes it: 32 hexadecimal digits.
func IsUUID(s string) bool {
	if len(s) != 32 {
		return false
	}
	for i := range len(s) {
		if !(s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'f') {
			return false
		}
	}
	return true
}

func isHexByte(s string) bool {
	_, err := strconv.ParseUint(s, 16, 8)
	return len(s) == 2 && err == nil && strings.ToLower(s) == s
}

// FirstOf returns the first string; "" if there is none.
func FirstOf(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// siblings reports whether two directories have the same parent, or one contains the other.
func siblings(a, b string) bool {
	return path.Dir(a) == path.Dir(b) || strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

// Gone reports whether err means that a name does not exist.
func Gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
